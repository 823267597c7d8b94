"""A screenshot is made small enough for the documentation, or refused."""

from __future__ import annotations

import io
import random

import pytest
from PIL import Image

from tests.pages.pictures import MAX_BYTES, small_png


def _png(picture: Image.Image) -> bytes:
    packed = io.BytesIO()
    picture.save(packed, "PNG")
    return packed.getvalue()


def test_picture_of_few_colours_stays_as_it_is() -> None:
    picture = Image.new("RGB", (1200, 900), "#ffffff")
    picture.paste("#0b6bcb", (100, 100, 300, 200))
    small = small_png(_png(picture))
    assert len(small) < 3_000
    assert Image.open(io.BytesIO(small)).convert("RGB").tobytes() == picture.tobytes()


def test_picture_that_cannot_be_small_is_refused() -> None:
    noise = Image.frombytes("RGB", (700, 700), random.Random(1).randbytes(700 * 700 * 3))
    with pytest.raises(ValueError, match=r"700 x 700 pixels take .* and 150,000 is the most"):
        small_png(_png(noise))


def test_colours_are_given_up_where_that_makes_it_fit() -> None:
    noise = Image.frombytes("RGB", (400, 400), random.Random(1).randbytes(400 * 400 * 3))
    small = small_png(_png(noise))
    assert len(small) <= MAX_BYTES
    assert len(Image.open(io.BytesIO(small)).convert("RGB").getcolors(1 << 20) or []) < 256
