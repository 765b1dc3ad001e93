"""What `filters.decontaminate` finds, in plain Python: lists of tokens, dictionaries of grams."""

from __future__ import annotations

import math
from collections import Counter

CLASSES_ABOVE = 5  # mark, number, letter, latin, unspaced
UNSPACED, MARK = 9, 5
AGAIN, COMMON, SHARED, PASSAGE = 64, 10, 3, 20


def tokens(text: str, table) -> list[tuple[str, int, int, bool]]:
    """(token, first and last byte, whether its script has no spaces)."""
    found: list[tuple[str, int, int, bool]] = []
    at = 0
    open_ = False
    for place, char in enumerate(text):
        size = len(char.encode())
        kind = int(table[ord(char)])
        after = int(table[ord(text[place + 1])]) if place + 1 < len(text) else 0
        inside = char in "'\u2019\uff07" and after >= CLASSES_ABOVE and after != UNSPACED
        if open_ and (char == "\xad" or (inside and not found[-1][3])):
            token, start, _, free = found[-1]
            found[-1] = (token, start, at + size, free)
            at += size
            continue
        if kind < CLASSES_ABOVE:
            open_ = False
        else:
            narrow = chr(ord(char) - 0xFEE0) if 0xFF00 < ord(char) < 0xFF5F else char
            low = narrow.lower() if narrow.isascii() else char
            joins = open_ and (kind == MARK or not (found[-1][3] or kind == UNSPACED))
            if joins:
                token, start, _, free = found[-1]
                found[-1] = (token + low, start, at + size, free)
            else:
                found.append((low, at, at + size, kind == UNSPACED))
            open_ = True
        at += size
    return found


def words_of(toks) -> int:
    return sum(1 if t[3] else 2 for t in toks) // 2


def idf(items: int, df: int) -> int:
    """64 log2((items + 1) / df), rounded down."""
    return math.floor(64 * math.log2((items + 1) / df) + 1e-9)


def index(texts: list[str], n: int, min_words: int, full_to: int, table):
    """Items that are looked for: (place, words, tokens, those that must follow each other, grams).

    Grams with their weight and whether they are the item's own.
    """
    listed, seen = [], set()
    for place, text in enumerate(texts):
        toks = tokens(text, table)
        key = tuple(t[0] for t in toks)
        if words_of(toks) >= min_words and len(toks) >= n and key not in seen:
            seen.add(key)
            listed.append((place, toks))
    df: Counter[tuple[str, ...]] = Counter()
    for _, toks in listed:
        df.update({g for _, g in grams(toks, n)})
    out = []
    for place, toks in listed:
        own = grams(toks, n)
        shared = [False] * len(toks)
        at = 0
        while at < len(own):
            stop = at
            while stop < len(own) and df[own[stop][1]] >= SHARED:
                stop += 1
            if stop > at and stop - at + n - 1 >= PASSAGE:
                shared[at : stop + n - 1] = [True] * (stop + n - 1 - at)
            at = max(stop, at + 1)
        if words_of([t for t, s in zip(toks, shared, strict=True) if not s]) < min_words:
            shared = [False] * len(toks)
        asked = [(at, g) for at, g in own if not any(shared[at : at + n])]
        kept = {g for _, g in asked if df[g] <= COMMON}
        if not kept or not any(idf(len(listed), df[g]) for g in kept):
            continue
        least = min(df[g] for g in kept)
        inside = sorted({t for at, _ in asked for t in range(at, at + n)})
        weights = {g: (idf(len(listed), df[g]), df[g] == least) for g in kept}
        words = words_of([toks[t] for t in inside])
        telling = sorted({t for at, g in asked if g in kept for t in range(at, at + n)})
        whole = words <= full_to or words_of([toks[t] for t in telling]) < min_words
        whole = whole and inside[-1] - inside[0] + 1 == len(inside)
        spelled = [toks[t][0] for t in inside] if whole else None
        out.append((place, words, len(inside), spelled, weights))
    return out


def grams(toks, n: int) -> list[tuple[int, tuple[str, ...]]]:
    return [(at, tuple(t[0] for t in toks[at : at + n])) for at in range(len(toks) - n + 1)]


def find(text: str, known, n: int, needed, table) -> dict[int, tuple[int, int, int, int]]:
    """Items in a text by place: share in thousandths, own grams, first and last byte."""
    toks = tokens(text, table)
    last: dict[tuple[str, ...], int] = {}
    hits = []
    for at, gram in grams(toks, n):
        if not any(gram in weights for *_, weights in known):
            continue
        if gram in last and at - last[gram] < AGAIN:
            continue
        last[gram] = at
        hits.append((at, gram))
    found = {}
    for place, words, size, spelled, weights in known:
        mine = [(at, g) for at, g in hits if g in weights]
        need = needed(words)
        total = sum(w for w, _ in weights.values())
        owned = sum(own for _, own in weights.values())
        best = -1
        for right, (at, _) in enumerate(mine):
            window = [(b, g) for b, g in mine[: right + 1] if at - b <= 2 * size + 8 + AGAIN]
            there = {g for _, g in window}
            weight = sum(weights[g][0] for g in there)
            own = sum(weights[g][1] for g in there)
            if own * 1000 < need * owned or weight * 1000 < need * total or weight <= best:
                continue
            best = weight
            share = min(own * 1000 // owned, weight * 1000 // total)
            found[place] = (share, own, toks[window[0][0]][1], toks[at + n - 1][2])
        if spelled and place in found:
            said = [t[0] for t in toks]
            fits = [b for b in range(len(said)) if said[b : b + len(spelled)] == spelled]
            if not fits:
                del found[place]
                continue
            last_token = toks[fits[0] + len(spelled) - 1]
            found[place] = (*found[place][:2], toks[fits[0]][1], last_token[2])
    return found


def stretches(hits, weights, need: int, size: int) -> list[tuple[int, int]]:
    """Windows of one item, one after the other; hits are (gram, token, first byte, last byte)."""
    total = sum(w for w, _ in weights)
    owned = sum(own for _, own in weights)

    def enough(window) -> bool:
        there = {g for g, *_ in window}
        weight, own = sum(weights[g][0] for g in there), sum(weights[g][1] for g in there)
        return own * 1000 >= need * owned and weight * 1000 >= need * total

    told = []
    window: list[tuple[int, int, int, int]] = []
    for hit in [*hits, None]:
        before = [at for g, at, *_ in window if hit and g == hit[0]]
        apart = hit is None or (before and hit[1] - before[-1] >= size)
        if window and enough(window) and (apart or hit[1] - window[0][1] > 2 * size + 8 + AGAIN):
            for end in (0, -1):
                while (
                    window[-1][1] - window[0][1] > size
                    and [g for g, *_ in window].count(window[end][0]) > 1
                ):
                    window.pop(end)
            told.append((window[0][2], window[-1][3]))
            window = []
        if hit:
            window = [h for h in window if hit[1] - h[1] <= 2 * size + 8 + AGAIN] + [hit]
    return told
