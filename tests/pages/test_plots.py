"""Plots of pages: the same drawing gives the same bytes, under the style of the pages."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

from twinsieve.pipeline.pages.plots import COLOURS, figure, style, svg_of


def drawing() -> bytes:
    with style():
        made = figure(6, 2.5, columns=2)
        left, right = made.axes
        left.bar([1, 2, 3], [30, 10, 20], label="drops")
        left.legend()
        right.plot([0.7, 0.8], [1, 2])
        right.set_title("rate")
    return svg_of(made)


def test_same_drawing_gives_the_same_bytes_in_another_process_too() -> None:
    mine = drawing()
    code = "import sys; from tests.pages.test_plots import drawing; sys.stdout.buffer.write(drawing())"
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=300)
    assert other.stdout == mine == drawing()
    assert other.stderr == b""


def test_image_is_small_svg_in_our_colours_that_names_no_date_version_or_font() -> None:
    image = drawing()
    root = ElementTree.fromstring(image)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(image) < 100_000
    assert COLOURS[0].encode() in image
    for word in (b"Matplotlib v", b"dc:date", b"font-family", b"<text", b"script"):
        assert word not in image


def test_settings_of_the_user_change_nothing_and_stay() -> None:
    import matplotlib as mpl

    plain = drawing()
    with mpl.rc_context({"axes.facecolor": "red", "svg.fonttype": "none", "font.size": 30}):
        assert drawing() == plain
        assert mpl.rcParams["font.size"] == 30


def test_pyplot_is_not_loaded_and_a_home_that_cannot_be_written_gives_no_warning() -> None:
    code = "import sys; from tests.pages.test_plots import drawing; drawing(); print('matplotlib.pyplot' in sys.modules)"
    nowhere = {"HOME": "/proc/none", "PATH": "/usr/bin", "PYTHONPATH": ":".join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, timeout=300, env=nowhere
    )
    assert (ran.stdout, ran.stderr) == (b"False\n", b"")
