# mypy: ignore-errors
"""Kernel of `long_range`, over the masks of `_scan`.

A text is walked once for its events, a term and the segment it stands in, each once; sorted by
term (a counting sort), two pointers count the pairs of segments, so that the time is linear in the
text whatever its length.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from ._kernels_common import _bit, _mix, _trailing_zeros

COMMON = "60450845"  # version of _kernels_common


@njit(cache=True, nogil=True)
def _lengths(start, unspaced, at, size):
    """Words of a text, and half words: of these a character without spaces is one."""
    units, halves = 0, 0
    for p in range(at, at + size):
        m = start[p]
        while m:
            units += 1
            halves += 1 if unspaced[p] >> _trailing_zeros(m) & np.uint64(1) else 2
            m &= m - np.uint64(1)
    return units, halves


@njit(cache=True, nogil=True, forceinline=True)
def _enter(keys, key, room):
    """Slot of a key in a table, not 0, and whether it is new there."""
    slot = np.int64(key >> np.uint64(1)) & room
    while keys[slot] != np.uint64(0) and keys[slot] != key:
        slot = (slot + 1) & room
    new = keys[slot] == np.uint64(0)
    keys[slot] = key
    return slot, new


@njit(cache=True, nogil=True)
def _events(data, base, end, planes, at, size, long, letters, count, tables, events):
    """Terms and segments into `events`; how many of both. `long`: half words of a segment.

    A term behind the same three words as before is a repetition, no event.
    """
    word, start, unspaced, number = planes[0], planes[1], planes[2], planes[5]
    keys, owner, latest, said = tables
    terms, segments = events
    keys[:] = 0
    said[:] = 0
    room = np.int64(len(keys)) - 1
    known, found, halves = 0, 0, 0
    before, before_end = np.uint64(0), np.int64(-1)  # the last character without spaces
    one, two, three = np.uint64(0), np.uint64(0), np.uint64(0)  # the words before, last first
    for k in range(size):
        m = start[at + k]
        while m:
            i = 64 * k + np.int64(_trailing_zeros(m))
            m &= m - np.uint64(1)
            segment = halves // long
            if segment >= count:
                return known, found
            key = np.uint64(0)
            if _bit(unspaced, at, i):
                halves += 1
                b = data[base + i]
                n = 2 if b < 0xE0 else 3 if b < 0xF0 else 4
                own = np.uint64(0)
                for t in range(i, i + n):
                    own = own << np.uint64(8) | np.uint64(data[base + t])
                term = before_end == i
                key = own
                if term:
                    key |= before << np.uint64(32)
                before, before_end = own, i + n
            else:
                halves += 2
                length = 0
                term = not _bit(number, at, i)
                while base + i < end and _bit(word, at, i):
                    b = np.uint64(data[base + i])
                    length += b & np.uint64(0xC0) != np.uint64(0x80)
                    if np.uint64(0x41) <= b <= np.uint64(0x5A):
                        b |= np.uint64(0x20)
                    key = (key ^ b) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(1)
                    i += 1
                term = term and length >= letters
            key = _mix(key) | np.uint64(1)
            phrase = _mix(_mix(_mix(three) + two) + one) + key
            one, two, three = key, one, two
            if not term:
                continue
            _, new = _enter(said, _mix(phrase) | np.uint64(1), room)
            if not new:
                continue
            slot, new = _enter(keys, key, room)
            if new:
                owner[slot] = known
                latest[known] = -1
                known += 1
            number_of = owner[slot]
            if latest[number_of] != segment:
                latest[number_of] = segment
                terms[found], segments[found] = number_of, segment
                found += 1
    return known, found


@njit(cache=True, nogil=True)
def _shared_pairs(known, found, events, distance, most):
    """Pairs of segments, near ones and far, that share a term of at most `most` segments."""
    terms, segments = events
    bounds = np.zeros(known + 1, np.int64)
    for e in range(found):
        bounds[terms[e] + 1] += 1
    for t in range(known):
        bounds[t + 1] += bounds[t]
    places, sorted_ = bounds.copy(), np.empty(found, np.int32)
    for e in range(found):
        sorted_[places[terms[e]]] = segments[e]
        places[terms[e]] += 1
    near, far = 0, 0
    for t in range(known):
        low, high = bounds[t], bounds[t + 1]
        if high - low > most:
            continue
        left = low
        for e in range(low, high):
            while sorted_[left] <= sorted_[e] - distance:
                left += 1
            far += left - low
            near += e - left
    return near, far


@njit(cache=True, nogil=True)
def long_range(data, offsets, planes, blocks, words, letters, distance, common, counts):
    """Into int64[rows, 4]: segments, terms by segment, pairs near and far that share a term.

    `common`: numerator and denominator of the share of segments that a term may stand in. Rows of
    fewer than 2 `distance` segments have their segments alone.
    """
    for row in range(len(blocks)):
        base, end, at = offsets[row], offsets[row + 1], blocks[row]
        size = (end - base) // 64 + 1
        units, halves = _lengths(planes[1], planes[2], at, size)
        count = halves // (2 * words)
        counts[row, :] = 0
        counts[row, 0] = count
        if count < 2 * distance:
            continue
        room = 64
        while room < 2 * units:
            room *= 2
        tables = (
            np.empty(room, np.uint64),
            np.empty(room, np.int32),
            np.empty(units, np.int32),
            np.empty(room, np.uint64),
        )
        events = np.empty(units, np.int32), np.empty(units, np.int32)
        known, found = _events(
            data, base, end, planes, at, size, 2 * words, letters, count, tables, events
        )
        most = count * common[0] // common[1]
        counts[row, 1] = found
        counts[row, 2], counts[row, 3] = _shared_pairs(known, found, events, distance, most)
