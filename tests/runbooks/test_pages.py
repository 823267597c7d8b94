"""The pages of docs/runbooks have the same parts, and each is listed."""

from __future__ import annotations

from tests.deploy.played import rules
from tests.runbooks import pages


def test_every_page_has_the_same_parts_and_every_alert_names_its_page() -> None:
    for name in pages.names():
        assert pages.headings(name) == list(pages.SECTIONS), name
    named = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in rules() if "alert" in rule}
    listed = (pages.FOLDER / "README.md").read_text("utf-8")
    for alert, url in named.items():
        page = url.removeprefix("docs/runbooks/").removesuffix(".md")
        assert page in pages.names(), url
        assert f"| {alert} | [{page}]({page}.md) |" in listed
    for name in pages.names():
        assert f"({name}.md)" in listed
