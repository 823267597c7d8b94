"""A report of `tune`, read as a reader without scripts reads it: its tables, pairs and elements."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

_VOID = frozenset({"meta", "img", "br", "link", "input"})


class ReportPage(HTMLParser):
    """What a page holds.

    tables: rows of cells, by the id of the table, or by what its `data-table` says
    pairs: attributes of each pair; sides: both texts of each pair as they stand there
    elements: (name, attributes) of all elements; text: all text
    """

    def __init__(self, html: bytes) -> None:
        super().__init__()
        self.tables: dict[str, list[list[str]]] = {}
        self.pairs: list[dict[str, str]] = []
        self.sides: list[list[str]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.open: list[str] = []
        self._table: list[list[str]] | None = None
        self.feed(html.decode())
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "table":
            self._table = self.tables[attributes.get("id") or attributes["data-table"]] = []
        elif tag == "tr" and self._table is not None:
            self._table.append([])
        elif tag in ("td", "th") and self._table is not None:
            self._table[-1].append("")
        elif tag == "article":
            self.pairs.append(attributes)
            self.sides.append([])
        elif tag == "dd":
            self.sides[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag == "table":
            self._table = None

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data
        if self._table is not None and {"td", "th"} & set(self.open):
            self._table[-1][-1] += data
        if "dd" in self.open:
            self.sides[-1][-1] += data

    def labels_file(self, path: Path, labels: list[str]) -> Path:
        """Write what the script of the page writes if a reader gives the pairs these labels, "" for none."""
        lines = [
            f"{pair['data-later']}\t{pair['data-earlier']}\t{label}"
            for pair, label in zip(self.pairs, labels, strict=False)
            if label
        ]
        path.write_text("\n".join(["later_id\tearlier_id\tlabel", *lines, ""]), "utf-8")
        return path
