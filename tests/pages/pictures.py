"""Screenshots small enough for the documentation."""

from __future__ import annotations

import io
import subprocess

from PIL import Image

from tests import debian

MAX_BYTES = 150_000
_COLOURS = (256, 128, 64, 32)
FONTS = "fonts-noto-core fonts-noto-cjk fonts-noto-color-emoji"
_SHOWN = ("zh", "ja", "ar", "hi", "und-zsye")
"""Languages of generated and hostile texts, and emoji, as fontconfig names them."""


def small_png(png: bytes) -> bytes:
    """The same picture in a palette, with the most colours at which it has at most MAX_BYTES.

    raises: ValueError if it is larger with the fewest
    """
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    sizes = []
    for colours in _COLOURS:
        # Without dithering: areas of one colour stay so, and are packed well.
        palette = picture.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        packed = io.BytesIO()
        palette.save(packed, "PNG", optimize=True)
        if packed.tell() <= MAX_BYTES:
            return packed.getvalue()
        sizes.append(packed.tell())
    width, height = picture.size
    raise ValueError(
        f"{width} x {height} pixels take {min(sizes):,} bytes, and {MAX_BYTES:,} is the most; show less of the page"
    )


def need_fonts() -> None:
    """Install fonts where a language that pictures show has none. raises: MissingError where that cannot be done"""
    if not all(_has_font(language) for language in _SHOWN):
        debian.install(FONTS, "fonts of all languages")


def _has_font(language: str) -> bool:
    asked = ["fc-list", f":lang={language}", "family"]
    return bool(subprocess.run(asked, capture_output=True, timeout=60, check=True).stdout.strip())
