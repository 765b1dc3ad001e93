"""Kernels of the template stage: hashes by which URLs of one page are one.

Plain-Python twins: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .._kernels_common import BASE, NOTHING, U, _fmix

COMMON = "60450845"  # version of _kernels_common
PICTURE = np.frombuffer(b"/media/", np.uint8)
_LOWER = np.arange(256, dtype=np.uint64)
_LOWER[65:91] += U(32)


@njit(cache=True, nogil=True)
def _tells(data, at, end, ignored):
    """Whether a parameter of a query tells pages apart: one of a campaign or visit does not."""
    utm = at + 4 <= end and data[at] | 32 == 117 and data[at + 1] | 32 == 116
    if utm and data[at + 2] | 32 == 109 and data[at + 3] == 95:
        return False
    h = NOTHING
    for k in range(at, end):
        if data[k] == 61:
            break
        h = h * BASE + _LOWER[data[k]]
    for other in ignored:
        if h == other:
            return False
    return at < end


@njit(cache=True, nogil=True, inline="always")
def _amp(data, at):
    """Whether `amp;` stands at `at`, left of an `&amp;`."""
    return data[at] == 97 and data[at + 1] == 109 and data[at + 2] == 112 and data[at + 3] == 59


@njit(cache=True, nogil=True)
def _route(data, at, end):
    """Where a fragment begins that names a page (`#/news`, `#!news`), and where any does.

    Not one that names none (`#/`), nor MediaWiki's, which show a picture over the page
    (`#/media/File:Map.png`).
    """
    for k in range(at, end):
        if data[k] == 35:
            i = k + 1
            if i < end and data[i] == 33:
                i += 1
            elif i == end or data[i] != 47:
                return end, k
            picture = end - k > 8
            for j in range(len(PICTURE)):
                picture = picture and data[k + 1 + j] == PICTURE[j]
            if picture:
                picture = False
                for j in range(k, end):
                    picture |= data[j] == 58
            while i < end and data[i] == 47:
                i += 1
            return (end if i == end or picture else k), k
    return end, end


@njit(cache=True, nogil=True)
def _page(data, at, from_, end, ignored, h):
    """Hash of a path and its query, put to `h`; parameters of the path stand after `from_`."""
    query = at
    while query < end and data[query] != 63:
        query += 1
    i = at
    slashes = 0  # not yet counted: none of them is, where nothing follows
    while i < query:
        if data[i] == 47:
            slashes += 1
            i += 1
            continue
        if data[i] == 59 and i > from_:
            k = i + 1
            while k < query and data[k] not in (47, 59):
                k += 1
            if not _tells(data, i + 1, k, ignored):
                i = k
                continue
        for _ in range(slashes):
            h = h * BASE + U(48)
        slashes = 0
        h = h * BASE + U(data[i]) + U(1)
        i += 1
    both = NOTHING  # of the parameters: a sum, which their order does not change
    at = query + 1
    while at < end:
        k = at
        while k < end and data[k] != 38:
            k += 1
        while at + 4 <= k and _amp(data, at):
            at += 4
        if _tells(data, at, k, ignored):
            own = U(64)  # of `?`
            for i in range(at, k):
                own = own * BASE + U(data[i]) + U(1)
            both += _fmix(own)
        at = k + 1
    return h * BASE + both


@njit(cache=True, nogil=True)
def hash_addresses(data, offsets, ignored, out):
    """Hash of each URL or host, uint64[rows]; 0 for an empty one alone.

    One page has one hash: scheme, `www.`, the usual port, case of the host, slashes at the end of
    the path, campaigns and sessions in the query and after `;` in the path (`utm_*`, and names of
    which `ignored` has the hashes), the order of what the query has, `&amp;` for `&`, and the
    fragment do not count; but one that names a page does (`_route`), as a path with its query.
    """
    for row in range(len(offsets) - 1):
        at = offsets[row]
        end = offsets[row + 1]
        if at == end:
            out[row] = NOTHING
            continue
        for k in range(at, min(at + 10, end - 2)):
            if data[k] == 58 and data[k + 1] == 47 and data[k + 2] == 47:
                at = k + 3
                break
        if (
            at + 4 < end
            and data[at] | 32 == 119
            and data[at + 1] | 32 == 119
            and data[at + 2] | 32 == 119
            and data[at + 3] == 46
        ):
            at += 4
        route, stop = _route(data, at, end)
        h = NOTHING
        k = at
        while k < stop and data[k] not in (47, 58, 63):
            h = h * BASE + _LOWER[data[k]] + U(1)
            k += 1
        port = k
        while port < stop and data[port] not in (47, 63):
            port += 1
        usual = port - k == 3 and data[k + 1] == 56 and data[k + 2] == 48  # :80, :443
        usual |= port - k == 4 and data[k + 1] == 52 and data[k + 2] == 52 and data[k + 3] == 51
        path = port if usual and data[k] == 58 else k
        h = _page(data, path, port, stop, ignored, h)
        if route < end:
            h = _page(data, route, route, end, ignored, h)
        out[row] = max(_fmix(h), U(1))
