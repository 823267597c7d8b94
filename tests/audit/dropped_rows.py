"""Rows as `dedup --duplicates` writes them, made by hand."""

from __future__ import annotations

from typing import Any

HOSTILE = [
    "<script>document.title = 'ran'</script>",
    "\"'><img src=x onerror=alert(1)>",
    "\u202egnp.exe\u202c and \u2067more\u2069",
    "\x1b[2J\x07\x00\r\n\tcontrol",
    "</script></style>{{ 7 * 7 }}{% raw %}",
    "half a pair \ud800",
    "=cmd|' /C calc'!A0",
    " \u3000@SUM(1)",
    "＝1+1",
    "-1 degrees",
    "+49 30 1234",
    "'quoted",
    "a\u2028b\u2029c",
    "Z" + "\u0300" * 300,
    "w" * 5_000,
    "1 MB: " + "x" * 1_000_000,
    "comma, \"quote\" and 'apostrophe'",
    "",
]
"""Texts that a page, a terminal or a spreadsheet could execute, or that break a layout."""


def row(position: int, leader: int | None, /, **more: Any) -> dict[str, Any]:
    """A near drop. more: members that are other ones"""
    text = f"the ferry leaves at {position}"
    said = {"position": position, "id": f"p{position}", "source": "posts.jsonl", "line": position + 1}
    leads = {"duplicate_of": leader, "duplicate_of_id": f"p{leader}", "leader_source": "posts.jsonl"}
    texts = {"text": text, "leader_text": f"the ferry leaves at {leader}"}
    if leader is None:
        leads = dict.fromkeys(leads)
        texts["leader_text"] = None
    like = {"stage": "near", "similarity": 0.9}
    return {**said, **leads, "leader_line": None if leader is None else leader + 1, **like, **texts, **more}
