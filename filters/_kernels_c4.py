# mypy: ignore-errors
"""Kernels of C4, over the masks of `_scan`.

Phrases are looked for at their rarest pair of bytes, 64 places at once.
"""

# ruff: noqa: ARG001, PLR1714, SIM109 - intrinsics have fixed arguments; Numba compiles a chain of
# comparisons to less than a set

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from ._kernels_common import (
    ALL,
    CLOSER,
    OTHER,
    QUOTE,
    TERMINAL,
    _bit,
    _citation,
    _count,
    _decode,
    _load8,
    _next,
)

COMMON = "60450845"  # version of _kernels_common


@njit(cache=True, nogil=True)
def count_either(data, one, other):
    """How often two byte values occur together."""
    n = 0
    for b in data:
        n += (b == one) | (b == other)
    return n


@intrinsic
def _leading_zeros(typingctx, value):
    """Zero bits above the highest one; 64 for 0."""

    def generate(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.uint64(types.uint64), generate


@intrinsic
def _equal(typingctx, data, at, value, fold):
    """Mask of data[at : at + 64]: which bytes are `value` when the bits of `fold` are set."""

    def generate(context, builder, signature, args):
        array = make_array(signature.args[0])(context, builder, args[0])
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        lanes = ir.VectorType(ir.IntType(8), 64)
        none = ir.Constant(lanes, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)

        def spread(which):
            value = context.cast(builder, args[which], signature.args[which], types.uint8)
            lone = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(lone, none, zeros)

        where = builder.bitcast(builder.gep(array.data, [at]), lanes.as_pointer())
        found = builder.load(where)
        found.align = 1
        same = builder.icmp_unsigned("==", builder.or_(found, spread(3)), spread(2))
        return builder.bitcast(same, ir.IntType(64))

    return types.uint64(data, at, value, fold), generate


@njit(cache=True, nogil=True)
def _candidates(data, base, n, pairs, maybe, squares, curls):
    """Masks of a text: where a phrase may be (at its rarest pair of bytes), `[`, `{`; any there.

    As bits of the result: 1, 2, 4. Bits behind the text may be set.
    """
    rest = np.zeros(65, np.uint8)
    found, square, curl = np.uint64(0), np.uint64(0), np.uint64(0)
    for k in range(n // 64 + 1):
        i = base + 64 * k
        m = np.uint64(0)
        if i + 65 <= len(data):
            for p in range(len(pairs)):
                m |= _equal(data, i, pairs[p, 0], 0x20) & _equal(data, i + 1, pairs[p, 1], 0x20)
            squares[k], curls[k] = _equal(data, i, 0x5B, 0), _equal(data, i, 0x7B, 0)
        else:
            rest[:] = 0
            rest[: len(data) - i] = data[i:]
            for p in range(len(pairs)):
                m |= _equal(rest, 0, pairs[p, 0], 0x20) & _equal(rest, 1, pairs[p, 1], 0x20)
            squares[k], curls[k] = _equal(rest, 0, 0x5B, 0), _equal(rest, 0, 0x7B, 0)
        maybe[k] = m
        found |= m
        square |= squares[k]
        curl |= curls[k]
    return (found > 0) | (square > 0) << 1 | (curl > 0) << 2


@njit(cache=True, nogil=True)
def _phrases(data, base, start, end, maybe, text, ends, kinds, anchors, heads):
    """Kinds (bits) of the ASCII phrases in a line of a text, without regard to case.

    `heads`: up to eight first bytes of each phrase with bit 5 set, and the mask of so many.
    """
    found = 0
    i = _next(maybe, 0, start, end, np.uint64(0))
    while i < end:
        at = 0
        for p in range(len(ends)):
            n, begin = ends[p] - at, i - anchors[p]
            if begin >= start and begin + n <= end:
                same = True
                if base + begin + 8 <= len(data):  # all but few are told apart by a head
                    low = _load8(data, base + begin) | np.uint64(0x2020202020202020)
                    same = low & heads[p, 1] == heads[p, 0]
                if same:
                    for t in range(n):
                        b = data[base + begin + t]
                        same &= text[at + t] == (b | 0x20 if 0x41 <= b <= 0x5A else b)
                    if same:
                        found |= kinds[p]
            at = ends[p]
        i = _next(maybe, 0, i + 1, end, np.uint64(0))
    return found


@njit(cache=True, nogil=True)
def _breaks(data, base, i, end, at, planes):
    """Sentence ends before a word of the line i to `end` (bits): terminal, space, no lower case.

    A full stop before a lower-case ASCII letter ends none; CJK terminals need no space.
    """
    start, visible, terminal = planes[1], planes[6], planes[7]
    no = np.uint64(0)
    n = 0
    stop = _next(terminal, at, i, end, no)
    while stop < end:
        word = _next(start, at, stop, end, no)
        if word == end:
            break
        later = _next(terminal, at, stop + 1, end, no)
        if later > word:
            cp, size = _decode(data, base + stop, base + end)
            if cp >= 0x3000:
                n += 1
            elif _next(visible, at, stop + size, word, ALL) < word:
                n += not (cp == 0x2E and 0x61 <= data[base + word] <= 0x7A)
        stop = later
    return n


@njit(cache=True, nogil=True)
def _chunks(visible, at, i, end):
    """Runs of visible bytes in a line."""
    n, before = 0, np.uint64(0)
    for t in range(i, end):
        now = _bit(visible, at, t)
        n += now > before
        before = now
    return n


@njit(cache=True, nogil=True)
def _punctuation(cp, c):
    """Whether a mark is punctuation to Unicode (P, not S), nearly."""
    if c == TERMINAL or c == QUOTE or c == CLOSER:
        return True
    if c != OTHER:
        return False
    if cp < 0x80:
        return not (
            cp == 0x24 or cp == 0x2B or 0x3C <= cp <= 0x3E or cp == 0x5E or cp == 0x60 or cp > 0x7B
        )
    return (
        0x2010 <= cp <= 0x205E
        or 0x3001 <= cp <= 0x301F
        or cp == 0xA1
        or cp == 0xA7
        or cp == 0xAB
        or 0xB6 <= cp <= 0xB7
        or cp == 0xBF
        or 0x600 <= cp <= 0x66D
    )


@njit(cache=True, nogil=True)
def _sentences(data, base, i, end, at, planes, table):
    """Sentences of a line (bits i to `end`) as spaCy's sentencizer has them.

    One more at each token that is no punctuation after one that is a terminal mark and no more.
    """
    start, visible = planes[1], planes[6]
    n, seen, any_token = 0, False, False
    while i < end:
        if not _bit(start, at, i):
            i += 1
            continue
        cp, width = _decode(data, base + i, base + end)
        c = table[cp]
        i += width
        lone = i >= end or not _bit(visible, at, i) or _bit(start, at, i) or data[base + i] == 0x5B
        any_token = True
        if c == TERMINAL and lone:
            seen = True
        elif seen and not _punctuation(cp, c):
            n += 1
            seen = False
    return n + any_token


@njit(cache=True, nogil=True)
def _unbroken(visible, at, i, end, most):
    """Whether more than `most` bytes from i to before `end` are visible in a row."""
    while i + most < end:  # such a run from i or later on has none of the spaces found here
        t = i + most
        while t >= i:
            m = ~visible[at + (t >> 6)] & (ALL >> np.uint64(63 - (t & 63)))
            if m:
                t = (t & ~63) + 63 - np.int64(_leading_zeros(m))
                break
            t = (t & ~63) - 1
        if t < i:
            return True
        i = t + 1
    return False


@njit(cache=True, nogil=True)
def _run(i, end, at, planes, e_starts, e_lengths, cut, cuts):
    """Most code points without a space in a line; cut[cut:cuts] are not there.

    Characters of scripts without spaces end a run.
    """
    unspaced, visible, more = planes[2], planes[6], planes[8]
    one = np.uint64(1)
    best, run = 0, 0
    while i < end:
        if cut < cuts and e_starts[cut] == i:
            i += e_lengths[cut]
            cut += 1
            continue
        k, b = at + (i >> 6), np.uint64(i & 63)
        if (unspaced[k] >> b | ~visible[k] >> b) & one:
            run = 0
            i = _next(more, at, i + 1, end, ALL)
            continue
        run += np.int64(~more[k] >> b & one)
        best = max(best, run)
        i += 1
    return best


@njit(cache=True, nogil=True)
def _ends_well(data, base, begin, end, at, planes, table, e_starts, e_lengths, cut, cuts):
    """Whether a line ends in terminal punctuation or a quote, brackets and citations aside.

    Not with three full stops at its very end.
    """
    visible, more = planes[6], planes[8]
    i, dots, last = end - 1, 0, True
    while i >= begin:
        if cuts > cut and e_starts[cuts - 1] + e_lengths[cuts - 1] == i + 1:
            cuts -= 1
            i = e_starts[cuts] - 1
            continue
        stop = i + 1
        while more[at + (i >> 6)] >> np.uint64(i & 63) & np.uint64(1):
            i -= 1
        seen = visible[at + (i >> 6)] >> np.uint64(i & 63) & np.uint64(1)
        c = table[_decode(data, base + i, base + stop)[0]]
        if data[base + i] == 0x2E and last:
            dots += 1
            if dots == 3:
                return False
        elif dots:
            return True
        elif seen:
            last = False
            if c != CLOSER:
                return c == TERMINAL or c == QUOTE
        i -= 1
    return dots > 0


@njit(cache=True, nogil=True)
def _citations(data, base, i, end, at, row, start, forms, squares, edits, edit):
    """Book the citation marks of a line, clear the first bytes of words in them; edits so far."""
    e_rows, e_starts, e_lengths, e_reasons = edits
    i = _next(squares, 0, i, end, np.uint64(0))
    while i < end:
        n = _citation(data, base + i, base + end, forms[0], forms[1])
        if n:
            e_rows[edit], e_starts[edit], e_lengths[edit], e_reasons[edit] = row, i, n, 0
            edit += 1
            for t in range(i, i + n):
                start[at + (t >> 6)] &= ~(np.uint64(1) << np.uint64(t & 63))
        i = _next(squares, 0, i + max(n, 1), end, np.uint64(0))
    return edit


@njit(cache=True, nogil=True)
def c4(data, offsets, planes, blocks, row0, table, limits, phrases, forms, edits, edit, out):
    """C4's line rules as edits and its page rules as counts, out int32[rows, 5] (`c4.SCORES`).

    `limits`: longest word (code points), fewest words, is terminal punctuation asked for, are
    citations cut, are words runs of visible characters and sentences those of tokens;
    `phrases`: `pairs` of `_candidates`, then arguments of `_phrases`; `forms`: those of
    `_citation`. `edits`: rows (from `row0` on), starts, lengths, reasons (1 citation, 2 long word,
    3 no terminal, 4 few words, 5 script, 6 policy) less 1, with room for every `[` and line; `edit`
    are there. Returns how many there are then. Clears first bytes of words in citations.
    """
    max_word, min_words, terminal, citations, tokens = limits
    pairs, text, ends, kinds, anchors, heads = phrases
    e_rows, e_starts, e_lengths, e_reasons = edits
    start, visible, line = planes[1], planes[6], planes[10]
    no = np.uint64(0)
    maybe = squares = curls = np.empty(0, np.uint64)
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        size = n // 64 + 1
        if size > len(maybe):
            maybe, squares = np.empty(size, np.uint64), np.empty(size, np.uint64)
            curls = np.empty(size, np.uint64)
        any_ = _candidates(data, base, n, pairs, maybe, squares, curls)
        hinted, citing, curled = any_ & 1 > 0, citations and any_ & 2 > 0, any_ & 4 > 0
        sentences, lorem, curly, kept, cut = 0, 0, 0, 0, 0
        blank_before, cutting = True, False
        i = 0
        while i < n:
            begin, edit_before = i, edit
            end = _next(line, at, i, n, no)
            i = min(end + 1, n)
            if _next(visible, at, begin, end, no) == end:
                if cutting:
                    e_lengths[edit - 1] = i - e_starts[edit - 1]
                else:
                    blank_before = True
                continue
            if citing:
                edit = _citations(
                    data, base, begin, end, at, row0 + row, start, forms, squares, edits, edit
                )
            some = _chunks(visible, at, begin, end) if tokens else _count(start, at, begin, end)
            reason, found = 0, 0
            if (
                end - begin > max_word
                and (edit > edit_before or _unbroken(visible, at, begin, end, max_word))
                and max_word < _run(begin, end, at, planes, e_starts, e_lengths, edit_before, edit)
            ):
                reason = 1
            elif terminal and not _ends_well(
                data, base, begin, end, at, planes, table, e_starts, e_lengths, edit_before, edit
            ):
                reason = 2
            elif some < min_words:
                reason = 3
            else:
                if hinted:
                    found = _phrases(data, base, begin, i, maybe, text, ends, kinds, anchors, heads)
                reason = 4 if found & 1 else 5 if found & 2 else 0
            cutting = reason > 0 and blank_before
            if reason:
                edit = edit_before
                e_rows[edit], e_starts[edit] = row0 + row, begin
                e_lengths[edit], e_reasons[edit] = i - begin, reason
                edit += 1
                cut += 1
            else:
                blank_before = False
                kept += 1
                lorem += (found & 4) >> 2
                if curled:
                    curly += _count(curls, 0, begin, end)
                if tokens:
                    sentences += _sentences(data, base, begin, end, at, planes, table)
                else:
                    sentences += (some > 0) + _breaks(data, base, begin, end, at, planes)
        o = out[row]
        o[0], o[1], o[2], o[3], o[4] = sentences, lorem, curly, kept, cut
    return edit
