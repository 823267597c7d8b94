"""Every fingerprint the plain way: Python integers, one text at a time, nothing shared with the kernels."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from twinsieve.stages.text.scripts import UNSPACED_RANGES

MASK32 = (1 << 32) - 1
MASK64 = (1 << 64) - 1
POLYNOMIAL = 0xD6E8FEB86659FD93
GOLDEN = 0x9E3779B97F4A7C15


def mix64(x: int) -> int:
    x ^= x >> 30
    x = x * 0xBF58476D1CE4E5B9 & MASK64
    x ^= x >> 27
    x = x * 0x94D049BB133111EB & MASK64
    return x ^ x >> 31


def mix32(x: int) -> int:
    x ^= x >> 16
    x = x * 0x85EBCA6B & MASK32
    x ^= x >> 13
    x = x * 0xC2B2AE35 & MASK32
    return x ^ x >> 16


def siphash_128(content: bytes, key: bytes) -> bytes:
    """SipHash-2-4 with 16 bytes of output, as the paper and the reference code say it."""
    k0, k1 = int.from_bytes(key[:8], "little"), int.from_bytes(key[8:], "little")
    v = [
        k0 ^ int.from_bytes(b"somepseu", "big"),
        k1 ^ int.from_bytes(b"dorandom", "big") ^ 0xEE,
        k0 ^ int.from_bytes(b"lygenera", "big"),
        k1 ^ int.from_bytes(b"tedbytes", "big"),
    ]

    def rotate(at: int, by: int) -> None:
        v[at] = (v[at] << by | v[at] >> 64 - by) & MASK64

    def rounds(count: int) -> None:
        for _ in range(count):
            for a, b, left, half, c, d, right in ((0, 1, 13, 32, 2, 3, 16), (2, 1, 17, 32, 0, 3, 21)):
                for one, other, by in ((a, b, left), (c, d, right)):
                    v[one] = (v[one] + v[other]) & MASK64
                    rotate(other, by)
                    v[other] ^= v[one]
                rotate(a, half)

    padded = content + bytes(-(len(content) + 1) % 8) + bytes([len(content) % 256])
    for start in range(0, len(padded), 8):
        word = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return first.to_bytes(8, "little") + (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")


def draw(purpose: int, count: int) -> list[int]:
    """The numbers of a purpose, which are the same for everybody."""

    def splitmix(x: int) -> int:
        return mix64((x + GOLDEN) & MASK64)

    state = splitmix(splitmix(0) ^ purpose)
    return [splitmix((state + GOLDEN * i) & MASK64) for i in range(1, count + 1)]


def family(purpose: int, count: int) -> tuple[int, list[tuple[int, int]]]:
    first, *rest = draw(purpose, count + 1)
    return first, [(number >> 32 | 1, number & MASK32) for number in rest]


def pair_hash(previous: int, current: int, seed: int) -> int:
    return mix64(((previous << 32 | current) + seed) & MASK64)


def minhash(grams: set[int], coefficients: list[tuple[int, int]]) -> list[int]:
    return [min(((a * gram + b) & MASK32 for gram in grams), default=MASK32) for a, b in coefficients]


def band_values(text: str, count: int, by_script: bool = False, fours_from: int = 32) -> list[int]:
    gram_seed, coefficients = family(0, count)
    points = [ord(c) for c in text]
    alone = [c for c in points if not by_script or is_unspaced(chr(c))]
    grams = {pair_hash(MASK32, c, gram_seed) >> 32 for c in alone}
    grams |= {pair_hash(a, b, gram_seed) >> 32 for a, b in pairwise(points)}
    if by_script:
        triples = zip(points, points[1:], points[2:], strict=False)
        grams |= {
            mix64((pair_hash(a, b, gram_seed) * GOLDEN + c) & MASK64) >> 32
            for a, b, c in triples
            if not is_unspaced(chr(c))
        }
    values = minhash(grams, coefficients)
    if by_script and len(text) >= 48:
        fours = {pair_hash(MASK32, c, gram_seed) >> 32 for c in alone}
        fours |= {pair_hash(a, b, gram_seed) >> 32 for a, b in pairwise(points) if is_unspaced(chr(b))}
        fours |= {
            mix64((pair_hash(*run[:2], gram_seed) * GOLDEN + pair_hash(*run[2:], gram_seed)) & MASK64) >> 32
            for run in zip(points, points[1:], points[2:], points[3:], strict=False)
            if not is_unspaced(chr(run[3]))
        }
        values[fours_from:] = minhash(fours, coefficients[fours_from:])
    return values


def band_keys(text: str, bands: int, rows: int, by_script: bool = False) -> list[int]:
    fours_from = max(32, (bands - min(2 * bands // 5, 11)) * rows)
    values = band_values(text, bands * rows, by_script, fours_from)
    keys = []
    for band in range(bands):
        key = band
        for value in values[band * rows : (band + 1) * rows]:
            key = mix32((key * 0x9E3779B1 + value) & MASK32)
        keys.append(key)
    return keys


def signature(text: str, by_script: bool = False) -> int:
    if len(text) < 20:
        counts = Counter((ord(c) * 0x85EBCA77 & MASK32) >> 27 for c in text)
        return sum((counts[b] % 2) << b for b in range(32))
    return sum((mix32(value) & 1) << b for b, value in enumerate(band_values(text, 32, by_script)))


def bag(text: str) -> list[int]:
    counts = Counter((ord(c) * 0x9E3779B1 & MASK32) >> 26 for c in text[:512])
    return [min(counts[2 * b], 15) + 16 * min(counts[2 * b + 1], 15) for b in range(32)]


def sketch(text: str) -> list[int]:
    gram_seed, coefficients = family(1, 64)
    grams = set()
    for i in range(len(text) - 3):
        a, b, c, d = (ord(char) for char in text[i : i + 4])
        joined = pair_hash(a, b, gram_seed) * GOLDEN + pair_hash(c, d, gram_seed)
        grams.add(mix64(joined & MASK64) >> 32)
    return [mix32(value) >> 24 for value in minhash(grams, coefficients)]


def is_unspaced(char: str) -> bool:
    return any(first <= ord(char) <= last for first, last in UNSPACED_RANGES)


def tokens(text: str, word_starts: str, by_words: bool) -> list[str]:
    found: list[str] = []
    for i, char in enumerate(text):
        joins = (
            by_words
            and i > 0
            and word_starts[i] == "0"
            and not is_unspaced(char)
            and not is_unspaced(text[i - 1])
        )
        if joins:
            found[-1] += char
        else:
            found.append(char)
    return found


def polynomial(numbers: list[int]) -> int:
    value = 0
    for number in numbers:
        value = (value * POLYNOMIAL + number) & MASK64
    return value


def run_hash(words: tuple[str, ...]) -> int:
    token_seed = draw(2, 3)[0]
    return polynomial([mix64((polynomial([ord(c) for c in word]) + token_seed) & MASK64) for word in words])


def runs(words: list[str], widths: list[int]) -> list[tuple[tuple[str, ...], int]]:
    """Features with the weight their position gives."""
    found = []
    for width in widths:
        count = len(words) - width + 1
        for i in range(count):
            found.append((tuple(words[i : i + width]), 4 - 4 * i // count))
    return found


def simhash_sums(weights: dict[int, int]) -> list[int]:
    sums = [0] * 128
    for feature, weight in weights.items():
        for lane, lane_seed in enumerate(draw(2, 3)[1:]):
            hashed = mix64((feature + lane_seed) & MASK64)
            for b in range(64):
                sums[64 * lane + b] += weight if hashed >> b & 1 else -weight
    return sums


def simhash(sums: list[int]) -> tuple[int, int]:
    bits = sum((1 << b) for b, total in enumerate(sums) if total > 0)
    return bits & MASK64, bits >> 64


def weak_bits(sums: list[int], tables: int, key_bits: int, weak: int) -> list[list[int]]:
    found = []
    for table in range(tables):
        first = table * 128 // tables
        certainty = [(abs(sums[(first + j) % 128]), j) for j in range(key_bits)]
        found.append([j for _, j in sorted(certainty)[:weak]])
    return found
