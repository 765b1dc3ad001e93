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
    _next,
)

COMMON = "d9947174"  # version of _kernels_common


@njit(cache=True, nogil=True)
def count_either(data, one, other):
    """How often two byte values occur together."""
    n = 0
    for b in data:
        n += (b == one) | (b == other)
    return n


@intrinsic
def _pairs(typingctx, data, at, one, other):
    """Mask of data[at : at + 64]: bytes `one` with `other` behind, both with bit 5 set."""

    def generate(context, builder, signature, args):
        array = make_array(signature.args[0])(context, builder, args[0])
        at = context.cast(builder, args[1], signature.args[1], types.intp)
        byte, lanes = ir.IntType(8), ir.VectorType(ir.IntType(8), 64)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        none = ir.Constant(lanes, ir.Undefined)

        def same(shift, which):
            where = builder.gep(array.data, [builder.add(at, ir.Constant(at.type, shift))])
            found = builder.load(builder.bitcast(where, lanes.as_pointer()))
            found.align = 1
            value = context.cast(builder, args[which], signature.args[which], types.uint8)
            lone = builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
            wanted = builder.shuffle_vector(lone, none, zeros)
            low = builder.or_(found, ir.Constant(lanes, [ir.Constant(byte, 0x20)] * 64))
            return builder.icmp_unsigned("==", low, wanted)

        return builder.bitcast(builder.and_(same(0, 2), same(1, 3)), ir.IntType(64))

    return types.uint64(data, at, one, other), generate


@njit(cache=True, nogil=True)
def _candidates(data, base, n, pairs, maybe):
    """Where in a text a phrase may be: at its rarest pair of bytes, masks into `maybe`; is any."""
    rest = np.zeros(65, np.uint8)
    found = np.uint64(0)
    for k in range(n // 64 + 1):
        i = base + 64 * k
        m = np.uint64(0)
        if i + 65 <= len(data):
            for p in range(len(pairs)):
                m |= _pairs(data, i, pairs[p, 0], pairs[p, 1])
        else:
            rest[:] = 0
            rest[: len(data) - i] = data[i:]
            for p in range(len(pairs)):
                m |= _pairs(rest, 0, pairs[p, 0], pairs[p, 1])
        maybe[k] = m
        found |= m
    return found > 0


@njit(cache=True, nogil=True)
def _phrases(data, base, start, end, maybe, text, ends, kinds, anchors):
    """Kinds (bits) of the ASCII phrases in a line of a text, without regard to case."""
    found = 0
    i = _next(maybe, 0, start, end, np.uint64(0))
    while i < end:
        at = 0
        for p in range(len(ends)):
            n, begin = ends[p] - at, i - anchors[p]
            if begin >= start and begin + n <= end:
                same = True
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
def _citations(data, base, i, end, at, row, start, forms, edits, edit):
    """Book the citation marks of a line, clear the first bytes of words in them; edits so far."""
    e_rows, e_starts, e_lengths, e_reasons = edits
    while i < end:
        if data[base + i] == 0x5B:
            n = _citation(data, base + i, base + end, forms[0], forms[1])
            if n:
                e_rows[edit], e_starts[edit], e_lengths[edit], e_reasons[edit] = row, i, n, 0
                edit += 1
                for t in range(i, i + n):
                    start[at + (t >> 6)] &= ~(np.uint64(1) << np.uint64(t & 63))
                i += n
                continue
        i += 1
    return edit


@njit(cache=True, nogil=True)
def _occurs(data, start, end, byte):
    """How often a byte value occurs."""
    n = 0
    for b in data[start:end]:  # by index it takes longer
        n += b == byte
    return n


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
    pairs, text, ends, kinds, anchors = phrases
    e_rows, e_starts, e_lengths, e_reasons = edits
    start, visible, line = planes[1], planes[6], planes[10]
    no = np.uint64(0)
    maybe = np.empty(0, np.uint64)
    for row in range(len(blocks)):
        base, n, at = offsets[row], offsets[row + 1] - offsets[row], blocks[row]
        citing = citations and _occurs(data, base, base + n, 0x5B) > 0
        curled = _occurs(data, base, base + n, 0x7B) > 0
        if n // 64 + 1 > len(maybe):
            maybe = np.empty(n // 64 + 1, np.uint64)
        hinted = _candidates(data, base, n, pairs, maybe)
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
                edit = _citations(data, base, begin, end, at, row0 + row, start, forms, edits, edit)
            some = _chunks(visible, at, begin, end) if tokens else _count(start, at, begin, end)
            reason, found = 0, 0
            if end - begin > max_word and max_word < _run(
                begin, end, at, planes, e_starts, e_lengths, edit_before, edit
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
                    found = _phrases(data, base, begin, i, maybe, text, ends, kinds, anchors)
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
                    curly += _occurs(data, base + begin, base + end, 0x7B)
                if tokens:
                    sentences += _sentences(data, base, begin, end, at, planes, table)
                else:
                    sentences += (some > 0) + _breaks(data, base, begin, end, at, planes)
        o = out[row]
        o[0], o[1], o[2], o[3], o[4] = sentences, lorem, curly, kept, cut
    return edit
