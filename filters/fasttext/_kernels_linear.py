# mypy: ignore-errors
"""What becomes of a model's matrices once, and of the sums of each text at last.

No library's matrix product and no library's `exp` here: they add in an order, and round in a last
bit, that differs between CPUs. Sums and products of float64 in a fixed order do not.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LOG2E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
# 1/14!, ..., 1/1!, 1/0!: at |r| <= 0.35 the series goes beyond the last bit of a float64.
SERIES = np.array([1.0 / math.factorial(k) for k in range(14, -1, -1)])
POWERS = np.ldexp(1.0, np.arange(-1022, 1024))


@njit(cache=True, nogil=True)
def exponential(x):
    """e^x of a float64 within 1 unit in the last place; 0 below -700."""
    if x < -700.0:
        return 0.0
    whole = math.floor(x * LOG2E + 0.5)
    r = (x - whole * LN2_HIGH) - whole * LN2_LOW
    out = SERIES[0]
    for k in range(1, len(SERIES)):
        out = out * r + SERIES[k]
    # `ldexp` is a call, a product with a power of two as exact (`out` is 0.7 to 1.5)
    return out * POWERS[int(whole) + 1022] if whole <= 1023 else math.ldexp(out, int(whole))


@njit(cache=True, nogil=True)
def collapse(rows, matrix, out):
    """out[r, c] = rows[r] . matrix[:, c]: float32[n, dim], float64[dim, columns] to float64."""
    dim, columns = matrix.shape
    for r in range(len(rows)):
        for c in range(columns):
            out[r, c] = 0.0
        for d in range(dim):
            value = np.float64(rows[r, d])
            for c in range(columns):
                out[r, c] += value * matrix[d, c]


@njit(cache=True, nogil=True)
def fix(values, scale, first, column, table):
    """Fixed point: `values` float[n, columns] times `scale` into table[first:, column:] int32."""
    for r in range(len(values)):
        for c in range(values.shape[1]):
            table[first + r, column + c] = np.int32(np.rint(np.float64(values[r, c]) * scale))


@njit(cache=True, nogil=True)
def means(sums, column, count, step, out):
    """Mean of each text's features in float64[texts, columns]: the sum, over the count, times step.

    The sum is exact; the quotient of the two whole numbers is rounded once.
    """
    for text in range(len(sums)):
        n = sums[text, count]
        for c in range(out.shape[1]):
            out[text, c] = np.float64(sums[text, column + c]) / n * step if n else 0.0


@njit(cache=True, nogil=True)
def softmax(logits, out):
    """Probabilities float32[texts, k + 1]; the first label's logit is 0 and not in `logits`."""
    labels = out.shape[1]
    powers = np.empty(labels, np.float64)
    for text in range(len(logits)):
        most = 0.0
        for c in range(labels - 1):
            most = max(most, logits[text, c])
        total = 0.0
        for c in range(labels):
            powers[c] = exponential((logits[text, c - 1] if c else 0.0) - most)
            total += powers[c]
        for c in range(labels):
            out[text, c] = np.float32(powers[c] / total)


@njit(cache=True, nogil=True)
def sigmoids(logits, out):
    """Probabilities of independent labels, in the library's steps of 1/32 between -8 and 8."""
    for text in range(len(logits)):
        for c in range(out.shape[1]):
            x = np.float64(np.float32(logits[text, c]))
            if x < -8.0:
                out[text, c] = 0.0
            elif x > 8.0:
                out[text, c] = 1.0
            else:
                step = math.floor((x + 8.0) * 32.0)
                out[text, c] = np.float32(1.0 / (1.0 + exponential(8.0 - step / 32.0)))


@njit(cache=True, nogil=True)
def tree(logits, left, right, out):
    """Probabilities of a Huffman tree: each inner node's logit says how likely its right side is.

    `left` and `right` int32[nodes]: children of inner node i; a child below `labels` is a label, an
    inner node otherwise (its number less `labels`). The root is the last.
    """
    labels, nodes = out.shape[1], len(left)
    reach = np.empty(max(nodes, 1), np.float64)
    for text in range(len(logits)):
        if nodes == 0:
            out[text, 0] = 1.0
            continue
        reach[nodes - 1] = 1.0
        for node in range(nodes - 1, -1, -1):
            p = 1.0 / (1.0 + exponential(-logits[text, node]))
            for child, share in ((left[node], 1.0 - p), (right[node], p)):
                value = reach[node] * share
                if child < labels:
                    out[text, child] = np.float32(value)
                else:
                    reach[child - labels] = value
