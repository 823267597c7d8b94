"""Rows as `dedup --duplicates` writes them, made by hand."""

from __future__ import annotations

from typing import Any


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
