"""What banding finds: the S-curve, and the recall to expect on a set of pairs.

Plain arithmetic for documents and benchmarks; no decision depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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
