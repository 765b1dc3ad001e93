"""Plain-Python twins of dedup/_kernels.py, and the brute-force truth of near duplicates."""

from __future__ import annotations

import hashlib
import re
from fractions import Fraction

import numpy as np

M64 = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
BASE = 0xA24BAED4963EE407
STEP = 0x9FB21C651E98DF25
SPREAD = 0xD6E8FEB86659FD93


def fmix(x: int) -> int:
    x ^= x >> 33
    x = x * 0xFF51AFD7ED558CCD & M64
    x ^= x >> 33
    x = x * 0xC4CEB9FE1A85EC53 & M64
    return x ^ x >> 33


def rotl(x: int, by: int) -> int:
    return (x << by | x >> 64 - by) & M64


def normalise(text: bytes) -> bytes:
    return b" ".join(part for part in re.split(rb"[\t\n\v\f\r ]+", text) if part)


def murmur(text: bytes) -> tuple[int, int]:
    """MurmurHash3 x64 128, seed 0, after the public-domain reference."""
    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = 0
    whole = len(text) // 16 * 16
    for at in range(0, whole, 16):
        k1 = int.from_bytes(text[at : at + 8], "little")
        k2 = int.from_bytes(text[at + 8 : at + 16], "little")
        h1 ^= rotl(k1 * c1 & M64, 31) * c2 & M64
        h1 = ((rotl(h1, 27) + h2) * 5 + 0x52DCE729) & M64
        h2 ^= rotl(k2 * c2 & M64, 33) * c1 & M64
        h2 = ((rotl(h2, 31) + h1) * 5 + 0x38495AB5) & M64
    tail = text[whole:]
    if len(tail) > 8:
        h2 ^= rotl(int.from_bytes(tail[8:], "little") * c2 & M64, 33) * c1 & M64
    if tail:
        h1 ^= rotl(int.from_bytes(tail[:8], "little") * c1 & M64, 31) * c2 & M64
    h1 ^= len(text)
    h2 ^= len(text)
    h1 = (h1 + h2) & M64
    h2 = (h2 + h1) & M64
    h1, h2 = fmix(h1), fmix(h2)
    h1 = (h1 + h2) & M64
    return h1, (h2 + h1) & M64


# One alternative per rule of the tokens; the order decides. Bytes, since offsets are bytes.
TOKEN = re.compile(
    rb"(?P<gap>\xc2[\x00-\xff]|\xe2[\x00-\x81][\x00-\xff]|\xef\xbc[\x00-\x8f]|\xe3\x80[\x00-\xff])"
    rb"|(?P<single>[\xe4-\xe9][\x00-\xff]{2}|\xe3[\x81-\xff][\x00-\xff]"
    rb"|\xe0[\xb8-\xff][\x00-\xff]|\xe1[\x80-\x82\x9e\x9f][\x00-\xff]|\xf0[\xa0-\xff][\x00-\xff]{2})"
    rb"|(?P<word>[0-9A-Za-z\x80-\xff])"
    rb"|(?P<other>[\x00-\xff])",
    re.DOTALL,
)


def tokens(text: bytes) -> list[tuple[bytes, bool]]:
    """(lower-cased token, is a character without spaces)."""
    found: list[tuple[bytes, bool]] = []
    word = b""
    for match in TOKEN.finditer(text):
        if match.lastgroup == "word":
            word += match.group().lower()
            continue
        if word:
            found.append((word, False))
            word = b""
        if match.lastgroup == "single":
            found.append((match.group(), True))
    return [*found, (word, False)] if word else found


def shingle_length(found: list[tuple[bytes, bool]], ngram: int, char_ngram: int) -> int:
    return char_ngram if 2 * sum(single for _, single in found) > len(found) else ngram


def shingles(text: bytes, ngram: int = 5, char_ngram: int = 5) -> list[int]:
    found = tokens(text)
    n = shingle_length(found, ngram, char_ngram)
    hashes = []
    for token, _ in found:
        h = 0
        for byte in token:
            h = (h * BASE + byte) & M64
        hashes.append((h ^ h >> 32) * SPREAD & M64)
    out = []
    for i in range(len(hashes) - n + 1):
        s = 0
        for h in hashes[i : i + n]:
            s = (s * STEP + h) & M64
        out.append(fmix(s))
    return out


def shingle_set(text: bytes, ngram: int = 5, char_ngram: int = 5) -> set[tuple[bytes, ...]]:
    """The true shingles, no hash."""
    found = tokens(text)
    n = shingle_length(found, ngram, char_ngram)
    return {tuple(t for t, _ in found[i : i + n]) for i in range(len(found) - n + 1)}


def sketch(elements: set[int], k: int) -> list[int]:
    lanes = [M64] * k
    if not elements:
        return lanes
    for r in range(k):
        if r and M64 not in lanes:
            break
        for x in elements:
            y = fmix(x ^ r * GOLDEN & M64) if r else x
            lane = (y >> 32) * k >> 32
            lanes[lane] = min(lanes[lane], r << 32 | y & 0xFFFFFFFF)
    for lane in range(k):
        if lanes[lane] == M64:
            r = k + lane
            lowest = min(fmix(x ^ r * GOLDEN & M64) & 0xFFFFFFFF for x in elements)
            lanes[lane] = r << 32 | lowest
    return lanes


def band_keys(text: bytes, ngram: int, char_ngram: int, k: int, bands: int) -> list[int]:
    found = shingles(text, ngram, char_ngram)
    if not found:
        return [0] * bands
    lanes = sketch(set(found), k)
    rows = k // bands
    keys = []
    for band in range(bands):
        key = 0
        for lane in lanes[band * rows : band * rows + rows]:
            key = (key * STEP + lane) & M64
        keys.append(fmix(key ^ (band + 1) * GOLDEN & M64))
    return keys


def paragraphs(text: bytes, blank: int) -> list[bytes]:
    """Stretches that cover a text; each ends with `blank` or more line ends and what is between."""
    if not text:
        return []
    gap = rb"(?:\n[ \t\r]*){%d,}" % blank
    found, begin = [], 0
    for match in re.finditer(gap, text):
        end = match.start() + match.group().rindex(b"\n") + 1
        if text[begin : match.start()].strip(b" \t\r\n") and match.end() < len(text):
            found.append(text[begin:end])
            begin = end
    return [*found, text[begin:]]


def own_bytes(paragraph: bytes) -> int:
    """Bytes of a paragraph without ASCII white space at both ends."""
    return len(paragraph.strip(b" \t\n\v\f\r"))


def components(nodes: int, edges: list[tuple[int, int]]) -> list[int]:
    """The least node of each node's component, by spreading until nothing changes."""
    root = list(range(nodes))
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            low = min(root[a], root[b])
            changed |= root[a] != low or root[b] != low
            root[a] = root[b] = low
    return root


def cover(nodes: int, edges: dict[tuple[int, int], tuple[int, int]]) -> list[int | None]:
    """Witness of each node, None where kept; `edges` maps (a, b), a < b, to (shared, either)."""
    kept: set[int] = set()
    for node in range(nodes):
        if not any((other, node) in edges for other in kept):
            kept.add(node)
    witness: list[int | None] = []
    for node in range(nodes):
        proofs = [
            (-Fraction(*edges[min(node, other), max(node, other)]), other)
            for other in kept
            if (min(node, other), max(node, other)) in edges
        ]
        witness.append(None if node in kept else min(proofs)[1])
    return witness


def jaccard_edges(
    texts: list[bytes], threshold: Fraction
) -> dict[tuple[int, int], tuple[int, int]]:
    """All pairs of texts at or above `threshold`: (a, b), a < b -> (shared, either)."""
    sets = [shingle_set(text) for text in texts]
    edges = {}
    for b in range(len(sets)):
        for a in range(b):
            shared, either = len(sets[a] & sets[b]), len(sets[a] | sets[b])
            if either and Fraction(shared, either) >= threshold:
                edges[a, b] = shared, either
    return edges


def datasketch(text: bytes, ngram: int, char_ngram: int, k: int) -> tuple[list[int], int]:
    """Signature as datasketch 2 defines `affine32` with seed 1, and shingles with repeats."""
    found = tokens(text)
    n = shingle_length(found, ngram, char_ngram)
    joined = [b" ".join(t for t, _ in found[i : i + n]) for i in range(len(found) - n + 1)]
    draw = np.random.RandomState(1)
    a = draw.randint(0, 1 << 31, k, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    b = draw.randint(0, 1 << 32, k, dtype=np.uint32)
    lanes = [0xFFFFFFFF] * k
    for shingle in joined:
        h = int.from_bytes(hashlib.sha1(shingle).digest()[:4], "little")
        h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
        h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
        h ^= h >> 16
        lanes = [
            min(v, (x * h + y) & 0xFFFFFFFF)
            for v, x, y in zip(lanes, a.tolist(), b.tolist(), strict=True)
        ]
    return lanes, len(joined)
