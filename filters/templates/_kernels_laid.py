"""Kernels of the template stage: a text laid over its template.

They take words as `_kernels.words_of` gives them: hashes `words` uint64, `masks` uint8 and `places`
int64[words, 3] (first byte, byte after, line) of all texts one after another, those of row i from
`ends[i - 1]` to `ends[i]`. Plain-Python twins: tests/naive_templates.py.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from .._kernels_common import BASE, LITERAL, MASK, NOTHING, U, _fmix

COMMON = "60450845"  # version of _kernels_common
VERBATIM = U(1)  # tells n-grams of words from those of masked items
LITERALS = 3  # in an n-gram; with 2, phrases of prose are shared by chance
GAP = 20  # words; a longer run of others in a line of the template is no fill
SENTENCE = 5  # words; a shorter fill is a value
BRIDGE = 3  # words of the template between two parts of a sentence
TOLD = 2  # words in it that are its own and no fills: plain, or of the pages' language
PLAIN = 6  # and one in so many of its words
PROSE = 5  # words; a line of fewer is a label, not prose
NUMBER, RARE = 1, 3  # masks of a word with a digit and of a rare one, as `_kernels` has them
VERSE = 3  # lines of the page's own in a row, from which those of fewer words count as well
CARD = 10  # lines of label and value, from which values are what a page says
LABEL = 2  # words of the template in one of them, at most
VALUE = 3  # other words that are no numbers, at least


@njit(cache=True, nogil=True)
def _collapse(words, masks, first, last, items, firsts):
    """Hashes of literals and of runs of masked words; item i begins at word `firsts[i]`."""
    size = 0
    before = False
    for i in range(first, last):
        masked = masks[i] != LITERAL
        if not (masked and before):
            items[size] = MASK if masked else words[i]
            firsts[size] = i
            size += 1
        before = masked
    firsts[size] = last
    return size


@njit(cache=True, nogil=True)
def _grams(items, first, last, n, least, out):
    """Hash of the n items from each place in items[first:last]; 0: under `least` literals."""
    top = U(1)
    for _ in range(n):
        top *= BASE
    rolling = NOTHING
    literals = 0
    for at in range(first, last):
        rolling = rolling * BASE + items[at]
        literals += items[at] != MASK
        if at - first >= n:
            rolling -= items[at - n] * top
            literals -= items[at - n] != MASK
        if at - first >= n - 1:
            out[at - first - n + 1] = _fmix(rolling) if literals >= least else NOTHING
    return max(last - first - n + 1, 0)


@njit(cache=True, nogil=True)
def grams(words, masks, ends, n, starts, out, stops):
    """Hashes of all n-grams of each text, from `starts[row]`.

    Of masked items with `LITERALS` literals first, then of words.
    """
    items = np.empty(len(words) + 1, np.uint64)
    firsts = np.empty(len(words) + 1, np.int64)
    hashes = np.empty(len(words) + 1, np.uint64)
    for row in range(len(ends)):
        first = ends[row - 1] if row else 0
        write = starts[row]
        size = _collapse(words, masks, first, ends[row], items, firsts)
        for i in range(_grams(items, 0, size, n, LITERALS, hashes)):
            if hashes[i] != NOTHING:
                out[write] = hashes[i]
                write += 1
        for i in range(_grams(words, first, ends[row], n, 0, hashes)):
            out[write] = hashes[i] ^ VERBATIM
            write += 1
        stops[row] = write


@njit(cache=True, nogil=True)
def table_of(shared, table):
    """Put hashes into `table` uint64[2**k], which is empty (0) and at least twice as large."""
    wrap = len(table) - 1
    for h in shared:
        at = np.int64(h & U(wrap))
        while table[at] != NOTHING:
            at = (at + 1) & wrap
        table[at] = h


@njit(cache=True, nogil=True, inline="always")
def _held(table, h):
    wrap = len(table) - 1
    at = np.int64(h & U(wrap))
    while table[at] != NOTHING and table[at] != h:
        at = (at + 1) & wrap
    return h != NOTHING and table[at] == h


@njit(cache=True, nogil=True)
def cover(words, masks, places, ends, n, table, usual, heard, state):
    """How each word stands to a family's shared n-grams, `table`.

    `state` uint8[words]: 0 own, 1 literal of the template, 2 fill. A word in a shared n-gram is of
    the template, and a fill where it is masked. In a line of which at least half is of the
    template, runs of up to `GAP` other words are fills too; in other lines all are the page's own.
    A fill of `SENTENCE` words or more that reads like one is what the page says: own as well. So
    `TOLD` of them read, and one in `PLAIN`: not masked and not in `usual`, words that half of the
    family's pages have; or rare and in `heard`, rare words that come again in the family, since
    all words of a language that the table does not know are rare, but what fills slots seldom is
    the same twice. Up to `BRIDGE` words of the template may stand in it ("is a").
    """
    items = np.empty(len(words) + 1, np.uint64)
    firsts = np.empty(len(words) + 1, np.int64)
    hashes = np.empty(len(words) + 1, np.uint64)
    state[:] = 0
    for row in range(len(ends)):
        first = ends[row - 1] if row else 0
        size = _collapse(words, masks, first, ends[row], items, firsts)
        done = first
        for at in range(_grams(items, 0, size, n, LITERALS, hashes)):
            if _held(table, hashes[at]):
                left = firsts[at]
                right = firsts[at + n]
                # A run of masked words at an end fills a slot in its neighbour's line alone.
                if items[at] == MASK:
                    while places[left, 2] != places[firsts[at + 1], 2]:
                        left += 1
                if items[at + n - 1] == MASK:
                    while places[right - 1, 2] != places[firsts[at + n - 1] - 1, 2]:
                        right -= 1
                for i in range(max(done, left), right):
                    state[i] = 1 if masks[i] == LITERAL else 2
                done = max(done, right)
        done = first
        for at in range(_grams(words, first, ends[row], n, 0, hashes)):
            if _held(table, hashes[at] ^ VERBATIM):
                state[max(done, first + at) : first + at + n] = 1
                done = first + at + n
        i = first
        while i < ends[row]:
            begin = i
            line = places[i, 2]
            covered = 0
            while i < ends[row] and places[i, 2] == line:
                covered += state[i] != 0
                i += 1
            if 2 * covered < i - begin:
                state[begin:i] = 0
                continue
            j = begin
            while j < i:
                run = j
                while j < i and state[j] == 0:
                    j += 1
                if j - run <= GAP:
                    state[run:j] = 2
                j += j == run
            j = begin
            while j < i:
                run = j
                said = 0
                fills = 0
                stop = j
                while j < i and (state[j] == 2 or (fills and j - stop < BRIDGE)):
                    if state[j] == 2:
                        if masks[j] == LITERAL:
                            said += not _held(usual, words[j])
                        else:
                            said += masks[j] == RARE and _held(heard, words[j])
                        fills += 1
                        stop = j + 1
                    j += 1
                if fills >= SENTENCE and said >= TOLD and PLAIN * said >= fills:
                    for k in range(run, stop):
                        if state[k] == 2:
                            state[k] = 0
                j += j == run


@njit(cache=True, nogil=True)
def weigh(words, masks, places, ends, state, out, fills):
    """How each text stands to its template: `out` int32[rows, 5], `fills` uint64[rows].

    Words, words of the template, own words in lines of prose, literals of the template, words in
    lines of the template with a slot; and a hash of what fills the slots, in their order. A line of
    fewer than `PROSE` words is prose where `VERSE` lines and more in a row are the page's own: a
    poem, a list; numbers in it do not count. Where more, own are the values of a card: of `CARD`
    lines and more with at most `LABEL` literals of the template (a label, or none: it stands above)
    beside `VALUE` other words that are no numbers, these words.
    """
    for row in range(len(ends)):
        i = ends[row - 1] if row else 0
        out[row, 0] = ends[row] - i
        template = 0
        own = 0
        literal = 0
        slotted = 0
        fill = NOTHING
        run = 0  # lines of the page's own in a row
        verse = 0  # words of the short ones among them
        card = 0  # lines of label and value
        values = 0  # words of the values
        while i < ends[row]:
            line = places[i, 2]
            mine = 0
            others = 0
            told = 0
            label = 0
            value = 0
            slot = False
            while i < ends[row] and places[i, 2] == line:
                mine += state[i] == 0
                told += masks[i] != NUMBER
                others += state[i] != 0
                label += state[i] == 1
                value += state[i] != 1 and masks[i] != NUMBER
                if state[i] == 2:
                    fill = fill * BASE + words[i]
                    slot = True
                i += 1
            literal += label
            if label <= LABEL and value >= VALUE:
                card += 1
                values += value
            template += others
            slotted += others if slot else 0
            if others:
                own += verse if run >= VERSE else 0
                run = 0
                verse = 0
            else:
                run += 1
                verse += told if mine < PROSE else 0
            if mine >= PROSE:
                own += mine
        own += verse if run >= VERSE else 0
        own = max(own, values) if card >= CARD else own
        out[row, 1] = template
        out[row, 2] = own
        out[row, 3] = literal
        out[row, 4] = slotted
        fills[row] = _fmix(fill)
