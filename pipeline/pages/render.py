"""Render a page from a template. All values are escaped; a policy lets only the page's own script run."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from twinsieve.pipeline.basics.printable import beginning, printable
from twinsieve.pipeline.basics.program import program_version
from twinsieve.pipeline.basics.shown_amounts import moment, rate, share, size, span
from twinsieve.pipeline.pages.differing import parts_of

if TYPE_CHECKING:
    from jinja2 import Environment

_DATA = Path(__file__).parent / "data"
_MOST_SHOWN = 2_000


@dataclass(frozen=True, slots=True)
class Page:
    """A page. policy: the value of the header Content-Security-Policy, which `html` names too"""

    html: bytes
    policy: str


def render(template: str, *, script: str | None = None, **values: Any) -> Page:
    """The page of a template in `data/`, which extends `base.html`.

    script: name of the one script in `data/` that may run; it stands in the page, so that a file needs no
        other file. The page must be readable without it
    values: what the template names. Each string is escaped for HTML, and its characters that act are shown as
        escapes; only style and script, which are our own files, go in as they are
    raises: jinja2.UndefinedError if the template names a value that is missing
    """
    style = (_DATA / "style.css").read_text("utf-8")
    code = (_DATA / script).read_text("utf-8") if script is not None else None
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_hashed(style)}",
            f"script-src {_hashed(code)}" if code is not None else "script-src 'none'",
            "img-src data:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    html = (
        _environment()
        .get_template(template)
        .render(
            **values,
            style=style,
            script=code,
            policy=policy,
            version=program_version(),
        )
    )
    return Page(html.encode("utf-8", "backslashreplace"), policy)


def svg_image(svg: bytes) -> str:
    """The address of an image that a template can name: an image runs no script, whatever it holds."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(_DATA),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
    )
    made.filters["count"] = lambda number: f"{number:,}"
    made.filters["whole"] = lambda number: f"{number:,.0f}"
    made.filters["rate"] = rate
    made.filters["size"] = size
    made.filters["span"] = span
    made.filters["moment"] = moment
    made.filters["share"] = share
    made.filters["shown"] = lambda text: beginning(text, _MOST_SHOWN)
    made.globals["parts_of"] = parts_of
    return made
