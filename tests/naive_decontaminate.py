"""What `filters.decontaminate` finds, in plain Python: lists of tokens, dictionaries of grams."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from html.entities import name2codepoint

import numpy as np

from gristmill.filters._near import (
    WIDEST,
    form_words,
    other_signs,
    same_numbers,
    same_question,
    signs_at,
    words_at,
)

CLASSES_ABOVE = 5  # mark, number, letter, latin, unspaced
UNSPACED, MARK = 9, 5
AGAIN, COMMON, SHARED, PASSAGE = 64, 10, 3, 20
LABELS = ("ABCDEFGHIJ", "123456789")
BETWEEN = 5


REFERENCE = re.compile(r"&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,7})|([A-Za-z0-9]{0,8}));")
BREAK = re.compile(r"\r?\n[ \t]*(.)", re.DOTALL)


def characters(text: str) -> list[tuple[str, int]]:
    """Characters and their bytes; a reference is what it stands for."""
    out, at = [], 0
    while at < len(text):
        char, size = text[at], len(text[at].encode())
        if m := REFERENCE.match(text, at):
            dec, hexes, name = m.groups()
            code = int(dec) if dec else int(hexes, 16) if hexes else name2codepoint.get(name, -1)
            code = 39 if name == "apos" else code
            if 128 <= code < 160:
                code = ord(bytes([code]).decode("cp1252", "replace"))
            if 0 <= code <= 0x10FFFF and not 0xD800 <= code < 0xE000:
                char, size = chr(code), len(m.group())
        out.append((char, size))
        at += size if size > 1 and char != text[at] else 1
    return out


def broken(chars: list[tuple[str, int]], place: int, table) -> int:
    """How many characters after a hyphen at `place` a word goes on that a line's end broke; 0."""
    raw = [c if size == len(c.encode()) else "&" for c, size in chars[place + 1 : place + 14]]
    rest = "".join(raw)
    m = BREAK.match(rest)
    if not m or len(m.group()) - 1 > 10:
        return 0
    after = chars[place + len(m.group())][0] if m.group(1) == "&" else m.group(1)
    kind = int(table[ord(after)])
    small = "a" <= m.group(1) <= "z"
    wide = ord(m.group(1)) > 0x7F and kind >= CLASSES_ABOVE and kind != UNSPACED
    return len(m.group()) - 1 if small or wide else 0


def tokens(text: str, table) -> list[tuple[str, int, int, bool]]:
    """(token, first and last byte, whether its script has no spaces)."""
    found: list[tuple[str, int, int, bool]] = []
    chars = characters(text)
    at = place = 0
    open_ = False
    while place < len(chars):
        char, size = chars[place]
        kind = int(table[ord(char)])
        after = int(table[ord(chars[place + 1][0])]) if place + 1 < len(chars) else 0
        inside = char in "'\u2019\uff07" and after >= CLASSES_ABOVE and after != UNSPACED
        hyphen = char in "\xad\u2010" or (char == "-" and size == 1)
        skip = broken(chars, place, table) if open_ and hyphen and not found[-1][3] else 0
        if skip:
            size = sum(n for _, n in chars[place : place + 1 + skip])
            place += skip
        if open_ and (skip or char == "\xad" or (inside and not found[-1][3])):
            token, start, _, free = found[-1]
            found[-1] = (token, start, at + size, free)
        elif kind < CLASSES_ABOVE:
            open_ = False
        else:
            narrow = chr(ord(char) - 0xFEE0) if 0xFF00 < ord(char) < 0xFF5F else char
            narrow = str(unicodedata.decimal(narrow, narrow))
            low = narrow.lower() if narrow.isascii() else char
            joins = open_ and (kind == MARK or not (found[-1][3] or kind == UNSPACED))
            if joins:
                token, start, _, free = found[-1]
                found[-1] = (token + low, start, at + size, free)
            else:
                found.append((low, at, at + size, kind == UNSPACED))
            open_ = True
        at += size
        place += 1
    return found


def words_of(toks) -> int:
    return sum(1 if t[3] else 2 for t in toks) // 2


def idf(items: int, df: int) -> int:
    """64 log2((items + 1) / df), rounded down."""
    return math.floor(64 * math.log2((items + 1) / df) + 1e-9)


def index(items: list[list[str]], n: int, min_words: int, full_to: int, long_from: int, table):
    """Items that are looked for: (place, words, tokens, those that must follow each other, those of
    which one may be another, words as they compare, tokens by part, grams).

    Grams with their weight and whether they are the item's own; tokens that may be another with
    whether they may. An item is its question and what is added to that where it is short.
    """
    listed, seen = [], set()
    items = [i if words_of(tokens(i[0], table)) < min_words else i[:1] for i in items]
    texts = ["\n".join(parts) for parts in items]
    for place, text in enumerate(texts):
        toks = tokens(text, table)
        key = tuple(t[0] for t in toks)
        if words_of(toks) >= min_words and len(toks) >= n and key not in seen:
            seen.add(key)
            listed.append((place, toks))
    df: Counter[tuple[str, ...]] = Counter()
    for _, toks in listed:
        df.update({g for _, g in grams(toks, n)})
    led = {place: labelled(items[place], n, table) for place, _ in listed}
    labels = Counter(g for mine in led.values() for g in mine)
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
        mine = {g for _, g in own}
        pointing = {g for g in led[place] if g not in mine and df[g] + labels[g] <= COMMON}
        weights |= dict.fromkeys(pointing, (0, False))
        bounds = [sum(len(p.encode()) + 1 for p in items[place][:k]) for k in range(99)]
        split = [
            [t[0] for t in toks if a <= t[1] < z]
            for a, z in zip(bounds, [*bounds[1 : len(items[place])], 1 << 60], strict=False)
        ]
        split = [part for part in split if part]
        if len(split) < 2 or len(inside) < len(toks) or len(inside) > WIDEST:
            split = []
        words = words_of([toks[t] for t in inside])
        telling = sorted({t for at, g in asked if g in kept for t in range(at, at + n)})
        joined = inside[-1] - inside[0] + 1 == len(inside)
        common = words_of([toks[t] for t in telling]) < min_words
        said = [toks[t][0] for t in inside]
        spelled = said if joined and (common or words <= full_to) else None
        short = said if joined and not common and words < long_from else []
        read = words_at(texts[place].encode(), spans_of([toks[t] for t in inside]))
        places = spans_of([toks[t] for t in inside])
        signs = signs_at(texts[place].encode(), places)
        if not short and len(inside) > WIDEST:
            signs = Counter()
        if not short and (len(inside) > WIDEST or not any(w.isdigit() for w in read)):
            read = []
        out.append((place, words, len(inside), spelled, short, read, signs, split, weights))
    frames = Counter(
        (tuple(s[:p]), tuple(s[p + 1 :])) for *_, s, _, _, _, _ in out for p in range(len(s))
    )
    return [
        (*one, [(w, frames[tuple(s[:p]), tuple(s[p + 1 :])] == 1) for p, w in enumerate(s)], *rest)
        for *one, s, read, signs, split, weights in out
        for rest in [(read, signs, split, weights)]
    ]


def labelled(parts: list[str], n: int, table) -> set[tuple[str, ...]]:
    """Grams of an item of parts where these are numbered."""
    if len(parts) < 2:
        return set()
    lines = [
        "\n".join([parts[0], *(f"{a} {x}" for a, x in zip(labels, parts[1:], strict=False))])
        for labels in LABELS
    ]
    return {g for line in lines for _, g in grams(tokens(line, table), n)}


def laid_out(said: list[str], places: list[int], parts: list[list[str]]):
    """First and last token of the first part near a place with all others behind it, or None."""
    if not parts:
        return None
    reach = sum(map(len, parts)) + BETWEEN * len(parts)
    for s in sorted({s for p in places for s in range(max(0, p - reach), p + 1)}):
        at = s + len(parts[0])
        if said[s:at] != parts[0]:
            continue
        left = list(parts[1:])
        while left:
            fits = [
                (gap, -len(part), part)
                for gap in range(BETWEEN + 1)
                for part in left
                if said[at + gap : at + gap + len(part)] == part
            ]
            if not fits:
                break
            gap, _, part = min(fits, key=lambda fit: fit[:2])
            left.remove(part)
            at += gap + len(part)
        if not left:
            return s, at
    return None


def spans_of(toks) -> np.ndarray:
    return np.array([t[1:3] for t in toks], np.int64).reshape(-1, 2)


def but_one(said: list[str], places: list[int], item: list[tuple[str, bool]], n: int):
    """First and last token of the item but for one word around one of the places, or None."""
    words = [w for w, _ in item]
    size = len(words)
    for place in places:
        for q in range(size - n + 1):
            if said[place : place + n] != words[q : q + n]:
                continue
            lo, hi = q, q + n
            while lo and place - (q - lo) and said[place - (q - lo) - 1] == words[lo - 1]:
                lo -= 1
            while hi < size and said[place + hi - q : place + hi - q + 1] == [words[hi]]:
                hi += 1
            s, e = place - (q - lo), place + hi - q
            rest, head = words[hi + 1 :], words[: max(0, lo - 1)]
            for gap in (1, 2, 0):
                stop, start = e + gap + len(rest), s - gap - len(head)
                if lo == 0 and rest and item[hi][1] and said[e + gap : stop] == rest:
                    return s, stop
                fits = start >= 0 and said[start : s - gap] == head
                if lo and hi == size and head and item[lo - 1][1] and fits:
                    return start, e
            rest, head = words[hi + 2 :], words[: max(0, lo - 2)]
            stop, start = e + 1 + len(rest), s - 1 - len(head)
            open_ = [may for _, may in item]
            if lo == 0 and rest and all(open_[hi : hi + 2]) and said[e + 1 : stop] == rest:
                return s, stop
            fits = start >= 0 and said[start : s - 1] == head
            if lo and hi == size and head and all(open_[lo - 2 : lo]) and fits:
                return start, e
            if lo == 0 and hi < size and said[e + 1 : e + 1 + size - hi] == words[hi:]:
                return s, e + 1 + size - hi
            if lo and hi == size and s - 1 - lo >= 0 and said[s - 1 - lo : s - 1] == words[:lo]:
                return s - 1 - lo, e
    return None


def grams(toks, n: int) -> list[tuple[int, tuple[str, ...]]]:
    return [(at, tuple(t[0] for t in toks[at : at + n])) for at in range(len(toks) - n + 1)]


def asks_else(text: str, toks, read, signs, form, first: int, last: int, more: int = 0) -> bool:
    """Whether the tokens of a copy ask something else; no `form`: numbers; no `read`: signs.

    Up to `more` tokens around it count.
    """
    wide = spans_of(toks[max(0, first - more) : last + more])
    raw, places = text.encode(), spans_of(toks[first:last])
    other = all(other_signs(signs, signs_at(raw, at)) for at in (places, wide))
    if other or not read:
        return other
    around = words_at(raw, wide)
    return not (same_question(read, around, form) if form else same_numbers(read, around))


def find(
    text: str, known, n: int, needed, table, spelling: bool
) -> dict[int, tuple[int, int | str, int, int]]:
    """Items in a text by place: share in thousandths, own grams, first and last byte."""
    form = form_words([read for *_, short, read, _, _, _ in known if short])
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
    said = [t[0] for t in toks]
    for place, words, size, spelled, short, read, signs, parts, weights in known:
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
            fits = [b for b in range(len(said)) if said[b : b + len(spelled)] == spelled]
            if fits:
                last_token = toks[fits[0] + len(spelled) - 1]
                found[place] = (*found[place][:2], toks[fits[0]][1], last_token[2])
            else:
                del found[place]
        if spelling and place in found:
            share, own, start, stop = found[place]
            inside = [k for k, t in enumerate(toks) if t[2] > start and t[1] < stop]
            kind = form if short else None
            asked = (read if share < 1000 else [], signs, kind)
            if asks_else(text, toks, *asked, inside[0], inside[-1] + 1, size):
                del found[place]
        if place in found:
            continue
        if there := laid_out(said, [at for at, _ in mine], parts):
            if not (spelling and asks_else(text, toks, [], signs, None, *there)):
                found[place] = (1000, "layout", toks[there[0]][1], toks[there[1] - 1][2])
        elif short and mine:
            there = but_one(said, [at for at, _ in mine], short, n)
            if there and not (spelling and asks_else(text, toks, read, signs, form, *there)):
                share = (len(short) - 1) * 1000 // len(short)
                found[place] = (share, "one", toks[there[0]][1], toks[there[1] - 1][2])
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
