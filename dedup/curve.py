"""What banding finds: the S-curve, the recall to expect, and what a setting costs.

Plain arithmetic for documents and benchmarks; no decision depends on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING

from ..documents.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SCHEMES = ("fss", "datasketch")  # Fast Similarity Sketching; MinHash as datasketch 2 makes it
MOST_LANES = 1 << 14  # the widest published, RefinedWeb's 450 bands of 20 rows, has 9,000
SIMILARITIES = (0.40, 0.50, 0.60, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95)


def candidate_probability(similarity: float, bands: int, rows: int) -> float:
    """Odds that a pair of this Jaccard agrees in at least one band: 1 - (1 - s**rows)**bands."""
    if not 0 <= similarity <= 1:
        msg = f"similarity is {similarity}, expected 0 to 1"
        raise ValueError(msg)
    return 1 - (1 - similarity**rows) ** bands


def sketch_bounds(similarity: float, rows: int, k: int) -> tuple[float, float]:
    """Least and greatest odds that a band of a Fast Similarity Sketch agrees.

    Lanes of one sketch are negatively dependent: prod (k*s - h) / (k - h) over h < rows is the
    least, s**rows the greatest (Dahlgaard, Knudsen, Thorup 2017, section 4).
    """
    least = 1.0
    for h in range(rows):
        least *= max(0.0, k * similarity - h) / (k - h)
    return least, similarity**rows


def expected_recall(similarities: Iterable[float], bands: int, rows: int) -> float:
    """Mean candidate probability of pairs of these Jaccards; 1 for no pairs."""
    odds = [candidate_probability(s, bands, rows) for s in similarities]
    return sum(odds) / len(odds) if odds else 1.0


def curve_table(
    settings: Iterable[tuple[int, int]], similarities: Sequence[float] = SIMILARITIES
) -> list[tuple[int, int, list[float]]]:
    """(bands, rows, candidate probability at each similarity) for each setting."""
    return [(b, r, [candidate_probability(s, b, r) for s in similarities]) for b, r in settings]


def check_not_swapped(bands: int, rows: int, threshold: float, where: str) -> None:
    """UsageError when a setting misses most pairs at its threshold and its mirror image does not.

    8 bands of 16 rows, a benchmark's setting for 0.8, find 20 % of the pairs at 0.8; 16 of 8 95 %.
    """
    found = candidate_probability(threshold, bands, rows)
    mirrored = candidate_probability(threshold, rows, bands)
    if found < 0.5 and mirrored >= 0.9:
        msg = (
            f"{where}: {bands} bands of {rows} rows find {found:.1%} of the pairs at "
            f"{threshold:g}, {rows} bands of {bands} rows {mirrored:.1%}; are they swapped? "
            f"State bands: {rows}, rows: {bands}"
        )
        raise UsageError(msg)


def check_sketch(bands: int, rows: int, scheme: str, where: str) -> None:
    """UsageError for an unknown scheme, or for more than `MOST_LANES` lanes."""
    if scheme not in SCHEMES:
        msg = f"{where}: unknown scheme {scheme!r}{did_you_mean(scheme, SCHEMES)}"
        raise UsageError(msg)
    if bands * rows > MOST_LANES:
        msg = (
            f"{where}: {bands} bands of {rows} rows are {bands * rows} lanes, expected at most "
            f"{MOST_LANES}; `gristmill dedup curve` shows what fewer find"
        )
        raise UsageError(msg)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a setting costs a document."""

    stored: int  # bytes beside the other scores
    exchanged: int  # bytes written to the exchange, one row a band
    hashes: float  # of a document of `shingles` shingles, a shingle
    expected_recall: float  # of pairs spread evenly from the threshold to 1
    strays: float  # share of pairs at 0.3 below the threshold that are compared in vain


def cost(
    bands: int, rows: int, threshold: float, *, scheme: str = "fss", shingles: int = 400
) -> Cost:
    """Expected cost and recall; rounds of a sketch as its coupon-collector bound k * ln k says."""
    k = bands * rows
    above = [threshold + (1 - threshold) * (i + 0.5) / 100 for i in range(100)]
    rounds = max(1.0, (k * log(k) + k) / shingles) if scheme == "fss" else float(k)
    return Cost(
        stored=8 * bands + 4 + (4 * k if scheme == "datasketch" else 0),
        exchanged=54 * bands,
        hashes=round(rounds, 1),
        expected_recall=expected_recall(above, bands, rows),
        strays=candidate_probability(max(0.0, threshold - 0.3), bands, rows),
    )


def render(bands: int, rows: int, threshold: float, *, scheme: str = "fss") -> str:
    """The S-curve of a setting beside the presets', its expected recall and its cost."""
    check_sketch(bands, rows, scheme, "dedup curve")
    check_not_swapped(bands, rows, threshold, "dedup curve")
    settings = list(dict.fromkeys([(bands, rows), (32, 8), (14, 8), (26, 11)]))
    points = sorted({*SIMILARITIES, round(threshold, 3)})
    lines = ["Jaccard  " + "".join(f"{f'{b} x {r}':>10}" for b, r in settings)]
    columns = [values for *_, values in curve_table(settings, points)]
    for i, point in enumerate(points):
        mark = "  <- threshold" if point == round(threshold, 3) else ""
        lines.append(f"{point:<9g}" + "".join(f"{c[i]:10.4f}" for c in columns) + mark)
    about = cost(bands, rows, threshold, scheme=scheme)
    least, most = sketch_bounds(threshold, rows, bands * rows)
    lines += [
        "",
        f"{bands} bands of {rows} rows, {bands * rows} lanes, {scheme}, verified at {threshold:g}",
        f"pairs from {threshold:g} to 1, evenly spread: {about.expected_recall:.4f} are compared",
        f"pairs at {max(0.0, threshold - 0.3):g}: {about.strays:.4f} are compared in vain",
        f"a document: {about.stored} bytes stored, {about.exchanged} exchanged",
        f"a shingle of 400: {about.hashes:g} hashes",
    ]
    if scheme == "fss":
        lines.append(f"a band agrees at {threshold:g} with odds of {least:.4f} to {most:.4f}")
    lines.append("below the threshold nothing is removed: every pair is verified")
    return "\n".join(lines)
