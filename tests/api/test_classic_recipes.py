"""The classic recipes of keywords and weights judge as a plain loop over all kept texts does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.generated_posts import generate
from twinsieve import Sieve, simhash
from twinsieve.pipeline.settings.load import load_settings
from twinsieve.pipeline.settings.stage_config import scheme_of

pytestmark = pytest.mark.matrix

K = 3


def plain_verdicts(texts: list[str], config: Path) -> list[tuple[bool, int]]:
    """Of each text whether it is kept, and its distance to the nearest kept one; -1: equal, or none near."""
    bodies = scheme_of(load_settings(config)).bodies(texts)
    keys = [bodies.text(row) for row in range(len(texts))]
    prints = simhash(texts, settings=config)
    kept: list[int] = []
    verdicts = []
    for row in range(len(texts)):
        if any(keys[row] == keys[one] for one in kept):
            verdicts.append((False, -1))
            continue
        comparable = [one for one in kept if not prints.mask[one]] if not prints.mask[row] else []
        nearest = min(((int(prints[row]) ^ int(prints[one])).bit_count() for one in comparable), default=64)
        verdicts.append((nearest > K, nearest if nearest <= K else -1))
        if nearest > K:
            kept.append(row)
    return verdicts


@pytest.mark.parametrize("name", ["jieba", "news", "weights"])
def test_a_recipe_judges_as_a_plain_loop_over_batches_threads_and_a_saved_state(
    root: Path, tmp_path: Path, name: str
) -> None:
    config = root / "config" / f"classic-{name}.yaml"
    texts = [post["text"] for post in generate(600, seed=5)]
    texts += [f"{text} {extra}" for text in texts[:60] for extra in ("转发", "ok")]
    expected = plain_verdicts(texts, config)
    assert sum(distance >= 0 for _, distance in expected) > 10
    for cuts, threads in (([len(texts)], 1), ([1, 100, 101, 640, len(texts)], 2)):
        sieve = Sieve(settings=config, threads=threads)
        found: list[tuple[bool, int]] = []
        low = 0
        for high in cuts:
            verdicts = sieve.judge(texts[low:high])
            found += [
                (bool(verdicts.kept[row]), -1 if (bits := verdicts[row].distance) is None else bits)
                for row in range(high - low)
            ]
            sieve.save(tmp_path / "state")
            sieve = Sieve.load(tmp_path / "state")
            low = high
        assert found == expected
