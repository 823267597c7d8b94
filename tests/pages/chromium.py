"""A real browser without a window: Debian's Chromium, which opens a page and notices what a page must not do."""

from __future__ import annotations

import json
import os
import time
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from unittest import mock
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.remote.webelement import WebElement

from tests.pages import distribution

WIDTHS = (1200, 400)
"""Of a desk and of a telephone, in pixels; layout holds at both."""
_HEIGHT = 900
_EMPTY = "about:blank"
_DEADLINE_S = 60
_FLAGS = (
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--no-proxy-server",
    # No name is looked up: whatever a page or the browser itself asks for, nothing leaves this machine.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    # Screenshots are alike wherever they are made.
    "--force-device-scale-factor=1",
    "--hide-scrollbars",
    "--lang=en-US",
)
_OUTSIDE = """
const width = document.documentElement.clientWidth, said = [];
const scroll = document.documentElement.scrollWidth;
if (scroll > width) said.push(`the page is ${scroll} wide`);
const clips = (element) => getComputedStyle(element).overflowX !== "visible";
for (const element of document.body.querySelectorAll("*")) {
  const box = element.getBoundingClientRect();
  if (box.width === 0 || box.height === 0 || (box.right <= width + 1 && box.left >= -1)) continue;
  let above = element.parentElement;
  while (above && above !== document.body && !clips(above)) above = above.parentElement;
  if (above && above !== document.body) continue;
  const name = element.tagName.toLowerCase() + (element.className ? "." + element.className : "");
  said.push(`${name} goes from ${Math.round(box.left)} to ${Math.round(box.right)}`);
}
return said.slice(0, 10);
"""
_CUT = """
const said = [];
for (const element of document.body.querySelectorAll("*")) {
  if (!["hidden", "clip"].includes(getComputedStyle(element).overflowX)) continue;
  if (element.scrollWidth <= element.clientWidth + 1 || element.clientWidth === 0) continue;
  const name = element.tagName.toLowerCase() + (element.className ? "." + element.className : "");
  said.push([`${name} shows ${element.clientWidth} of ${element.scrollWidth}`, element.textContent]);
}
return said;
"""
_ACTIVE = """
const said = [];
if (window.__pwned !== undefined) said.push("a text ran as script: " + window.__pwned);
for (const element of document.querySelectorAll("*")) {
  for (const {name, value} of element.attributes) {
    const address = ["href", "src", "action", "formaction", "xlink:href", "data"].includes(name);
    if (name.startsWith("on") || (address && /^(java|vb)script:/i.test(value.replace(/[\\x00-\\x20]/g, ""))))
      said.push(`<${element.tagName.toLowerCase()} ${name}=${value.slice(0, 80)}>`);
  }
}
if (document.querySelector("iframe, object, embed, base, form[action]")) said.push("a frame, object, base or form");
return said.slice(0, 10);
"""
T = TypeVar("T")


class Browser:
    """One Chromium, which shows one page at a time and keeps a list of what was wrong on it."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.downloads = Path()
        self._address = ""
        self._opened: list[str] = []
        self._hurry = ""

    def use(self, downloads: Path) -> None:
        """Begin a test: an empty page, nothing stored, nothing wrong yet, what is downloaded goes into this folder."""
        self.driver.execute_cdp_cmd(
            "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(downloads)}
        )
        self.downloads = downloads
        if self._hurry:
            self.driver.execute_cdp_cmd(
                "Page.removeScriptToEvaluateOnNewDocument", {"identifier": self._hurry}
            )
            self._hurry = ""
        if self._address != _EMPTY:
            self.leave()
        self.forget()
        self._opened = []
        self.problems()

    def leave(self) -> None:
        """Show an empty page, so that the one before asks its server for nothing more."""
        self._address = _EMPTY
        self.driver.get(self._address)

    def hurry(self) -> None:
        """Let timers of the pages that this test opens from now on end ten times as early."""
        script = "{ const wait = setTimeout; window.setTimeout = (call, ms, ...more) => wait(call, ms / 10, ...more); }"
        made = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        self._hurry = made["identifier"]

    def forget(self) -> None:
        """Empty what pages of files have stored, which all of them share."""
        self.driver.execute_cdp_cmd(
            "Storage.clearDataForOrigin", {"origin": "file://", "storageTypes": "all"}
        )

    def open(self, page: Path | str, *, width: int = WIDTHS[0], scripts: bool = True) -> None:
        """Show the page of a file or of an address.

        width: of the window, in pixels
        scripts: whether the page may run any, as in a browser of somebody who has them off
        """
        self._address = page.as_uri() if isinstance(page, Path) else page
        self._opened.append(self._address)
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
        self.resize(width)
        self.driver.get(self._address)

    def show(self, html: bytes, *, width: int = WIDTHS[0], scripts: bool = True) -> None:
        """Show these bytes as the page of a file."""
        page = self.downloads / "shown.html"
        page.write_bytes(html)
        self.open(page, width=width, scripts=scripts)

    def resize(self, width: int, height: int = _HEIGHT) -> None:
        """Give the window another size, in pixels."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def reload(self) -> None:
        self.driver.refresh()

    def reload_until(self, look: Callable[[], T], what: str) -> None:
        """Load the page again until `look` returns what counts as true.

        Chromium may load a page before it knows what the page wrote to its storage a moment ago.
        """

        def again() -> T:
            self.reload()
            return look()

        self.wait(again, what)

    def evaluate(self, script: str, *arguments: Any) -> Any:
        """What a function with this body returns in the page; works on a page without scripts too."""
        return self.driver.execute_script(script, *arguments)

    def all(self, selector: str) -> list[WebElement]:
        """The elements that a CSS selector finds, in the order of the page."""
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> WebElement:
        """The only element that a CSS selector finds."""
        found = self.all(selector)
        assert len(found) == 1, f"{selector} finds {len(found)} elements in {self._address}"
        return found[0]

    def text(self, selector: str) -> str:
        """What the page holds in the only element that is found, whether in sight or not."""
        return self._property(selector, "textContent")

    def seen(self, selector: str = "body") -> str:
        """What a reader sees of the only element that is found."""
        # Not selenium's own text, which leaves <noscript> out.
        return self._property(selector, "innerText").strip()

    def click(self, selector: str) -> None:
        self.one(selector).click()

    def press(self, keys: str) -> None:
        """Press these keys, whatever has the focus."""
        webdriver.ActionChains(self.driver).send_keys(keys).perform()

    def wait(self, look: Callable[[], T], what: str) -> T:
        """What `look` returns, as soon as that counts as true. Fails at a deadline, and says what did not come."""
        end = time.monotonic() + _DEADLINE_S
        while not (found := look()):
            assert time.monotonic() < end, f"{what} did not come within {_DEADLINE_S} s; {self.problems()}"
            time.sleep(0.05)
        return found

    def downloaded(self, name: str) -> bytes:
        """The bytes of a file of this name, once the browser has written it whole."""
        path = self.downloads / name
        self.wait(lambda: path.is_file() and not list(self.downloads.glob("*.crdownload")), name)
        return path.read_bytes()

    def picture(self, selector: str | None = None, *, height: int | None = None) -> bytes:
        """PNG of the page from its top, as high as it is or as told; or of one element."""
        if selector is not None:
            return self.one(selector).screenshot_as_png
        box = self.evaluate("const e = document.documentElement; return [e.clientWidth, e.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": box[0], "height": min(height or box[1], box[1]), "scale": 1}
        shot = {"format": "png", "clip": clip, "captureBeyondViewport": True}
        return b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", shot)["data"])

    def window(self) -> bytes:
        """PNG of what the window shows now."""
        return self.driver.get_screenshot_as_png()

    def problems(self) -> list[str]:
        """What was wrong since the last call: dialogs, errors of scripts, what the policy refused, requests of others.

        The browser tells each once; so a test that does not ask is asked at its end.
        """
        return list(self._told())

    def require_calm(self) -> None:
        """Fail with the problems since the last call, if there are any."""
        problems = self.problems()
        assert problems == [], "\n".join(problems)

    def require_inert(self, *, scripts: int = 1) -> None:
        """Fail if a text of the page does anything but stand there.

        scripts: how many the page has by its template
        """
        active = self.evaluate(_ACTIVE)
        assert active == [], "\n".join(active)
        held = self.evaluate("return document.scripts.length")
        assert held == scripts, f"{held} scripts stand in {self._address}, and {scripts} are ours"
        self.require_calm()

    def require_layout(self, *, cut: Iterable[str] = ()) -> None:
        """Fail if anything of the page cannot be seen, at a large and at a small width of the window.

        cut: a box with one of these words in it may cut what it holds, a character wider than the window
        """
        words = list(cut)
        for width in WIDTHS:
            self.resize(width)
            wrong = self.outside()
            wrong += [what for what, text in self.cut() if not any(word in text for word in words)][:10]
            assert wrong == [], f"at a width of {width}: " + "; ".join(wrong)
        self.resize(WIDTHS[0])

    def outside(self) -> list[str]:
        """What lies to the left or right of the window, in no box that cuts it or can be scrolled; at most ten."""
        found: list[str] = self.evaluate(_OUTSIDE)
        return found

    def cut(self) -> list[tuple[str, str]]:
        """Boxes that hold more than they show to the right, and cannot be scrolled; each with its text."""
        return [(what, text) for what, text in self.evaluate(_CUT)]

    def _property(self, selector: str, name: str) -> str:
        """Of the only element that is found. In one call: a page that renews itself may replace it between two."""
        script = "return [...document.querySelectorAll(arguments[0])].map((one) => one[arguments[1]])"
        found = self.evaluate(script, selector, name)
        assert len(found) == 1, f"{selector} finds {len(found)} elements in {self._address}"
        return str(found[0])

    def _told(self) -> Iterator[str]:
        events = [json.loads(line["message"])["message"] for line in self.driver.get_log("performance")]
        for event in events:
            params = event["params"]
            match event["method"]:
                case "Page.javascriptDialogOpening":
                    yield f"dialog: {params['message']}"
                case "Network.requestWillBeSent" if not self._is_own(params):
                    yield f"request: {params['request']['url'][:200]}"
                case "Network.webSocketCreated":
                    yield f"request: {params['url'][:200]}"
        for line in self.driver.get_log("browser"):
            if line["level"] in ("SEVERE", "WARNING"):
                yield f"{line['source']}: {line['message']}"

    def _is_own(self, request: dict[str, Any]) -> bool:
        """Whether a page may ask for this: for a page that the test opened, or for what is the page's own."""
        url = request["request"]["url"]
        if request.get("type") == "Document":
            return any(_is_of(url, page) for page in [*self._opened, _EMPTY])
        return _is_of(url, request["documentURL"])


def _is_of(url: str, page: str) -> bool:
    address, own = urlsplit(url), urlsplit(page)
    if address.scheme in ("data", "blob"):
        return True
    if own.scheme in ("http", "https"):
        return (address.scheme, address.netloc) == (own.scheme, own.netloc)
    # Each file is a world of its own: a page that reads its neighbour reads what is not its own.
    return (address.scheme, address.path) == (own.scheme, own.path)


def started(folder: Path) -> Browser:
    """A Chromium that was started just now, with an empty profile in this folder; `driver.quit` ends it."""
    options = Options()
    for flag in _FLAGS:
        options.add_argument(flag)
    if os.geteuid() == 0:
        # Its sandbox refuses root.
        options.add_argument("--no-sandbox")
    options.add_argument(f"--user-data-dir={folder}")
    options.add_argument(_EMPTY)
    options.binary_location = distribution.chromium()
    # Dialogs are closed, so that tests do not hang, and reported as events.
    options.unhandled_prompt_behavior = "dismiss"
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    # A path is given, so that selenium does not look for a driver to download; no proxy lies before this machine.
    service = Service(executable_path=distribution.chromedriver())
    with mock.patch.dict(os.environ, {"no_proxy": "localhost,127.0.0.1"}):
        return Browser(webdriver.Chrome(options=options, service=service))
