"""What `filters.pii` takes for keys and secrets, in plain Python; see `naive_pii`."""

from __future__ import annotations

import math
import re

GONE = b"\x01"
WORD = re.compile(rb"[A-Za-z0-9_]")


def word(w: bytes, i: int) -> bool:
    return 0 <= i < len(w) and WORD.match(w, i) is not None


def key(w: bytes, i: int, pii):
    if word(w, i - 1):
        return None
    sets = (rb"[A-Z0-9]", rb"[A-Za-z0-9]", rb"[A-Za-z0-9_-]", rb"[A-Za-z0-9_.-]", rb"[A-Za-z0-9/]")
    for prefix, least, most, kind, dots in pii.FORMS:
        if not w.startswith(prefix.encode(), i):
            continue
        letters = rb"(?:(?!-----%s)%s)*" % (rb"|\.\.\." if dots else b"", sets[kind])
        tail = re.compile(letters).match(w, i + len(prefix)).group()
        tail = tail.rstrip(b".") if dots else tail
        good = least <= len(tail) <= most and re.search(rb"\d", tail)
        if good and tail.count(b".") == dots and not tail.lower().endswith(b"example"):
            return i, i + len(prefix) + len(tail)
    return None


CLOSE = re.compile(rb"PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
RUN = re.compile(rb"[A-Za-z0-9+/=]+")


def block(w: bytes, i: int):
    if w[i : i + 11].lower() != b"-----begin ":
        return None
    line = w[i : i + 64].split(b"\n")[0]
    m = next((m for m in CLOSE.finditer(line) if m.end() > 20), None)
    if not m:
        return None
    last = p = i + m.end()
    sizes = []
    while p < len(w):
        if run := RUN.match(w, p):
            p = run.end()
            size = p - run.start()
            if size >= 16 or (p == len(w) and sum(sizes) >= 64):
                sizes.append(size)
                last = p
            continue
        if w.startswith(b"-----", p):
            m = next((m for m in CLOSE.finditer(w[p : p + 64]) if m.end() > 20), None)
            if w[p : p + 9].lower() == b"-----end " and m:
                return (i, p + m.end()) if sum(sizes) >= 64 else None
            break
        if w[p : p + 1] in (GONE, b"<", b"|") or p - last >= (64 if sizes else 512):
            break
        p += 1
    return (i, last) if sum(sizes) >= 64 and max(sizes) >= 40 else None


VALUE = rb"[ !#-&(-_a-~]"  # all but quotes
FRAMED = re.compile(rb"<[\w .-]*>|\{[\w .-]*\}|\|[\w .-]*\|")


def template(value: bytes, pii) -> bool:
    bare = value.strip(b" ")
    ends = bare[:1] + bare[-1:]
    joined = all(b in b"&()+,.;" for b in ends)
    marks = pii.TEMPLATES.encode().split()
    return joined or FRAMED.search(value) is not None or any(m in value.lower() for m in marks)


def drawn(value: bytes, pii, quoted: bool) -> bool:
    """Whether the kinds of characters of a value change as in one that was drawn."""
    n = len(value)
    kinds = re.sub(rb"[A-Z]", b"U", re.sub(rb"[a-z]", b"l", re.sub(rb"[0-9]", b"1", value)))
    kinds = re.sub(rb"[^Ul1]", b"?", kinds)
    pairs = [kinds[t : t + 2] for t in range(n - 1)]
    changes = [b for b in pairs if b"?" not in b and b[0] != b[1]]
    random = len([b for b in changes if b"1" in b]) >= 3 or 2 * len(changes) >= n
    if random and not re.search(rb"[ $(),;<>{|}]", value):
        return True
    if not quoted or re.search(rb"[a-z]{5}", value) or template(value, pii):
        return False
    if 10 * len(re.findall(rb"[ ,;]", value)) > n:
        return False
    turns = 2 * sum(b[0] != b[1] for b in pairs) >= n
    return random or (turns and all(kinds.count(kind) > 1 for kind in (b"U", b"l", b"1", b"?")))


def secret(w: bytes, at: int, pii):
    names = "|".join(map(re.escape, pii.NAMES.split()))
    tails = "|".join(map(re.escape, pii.TAILS.split()))
    quotes = rb"(?:\\?[\"'`])?"
    head = rb"(?:%s)(?:%s)?%s[ \t]{0,32}" % (names.encode(), tails.encode(), quotes)
    typed = rb"(?:%s:[ \t]{0,32}%s[\w.\[\]]{1,24}%s[ \t]{0,32})" % (head, quotes, quotes)
    form = rb"(?:%s|%s)\Z" % (head, typed) if w[at : at + 1] == b"=" else rb"(?:%s)\Z" % head
    if not re.search(form, w[max(0, at - 250) : at], re.IGNORECASE):
        return None
    p = re.compile(rb"[=>]{0,2}[ \t]{0,32}").match(w, at + 1).end()
    quote = re.compile(rb"\\[\"']|[\"'`]|").match(w, p).group()
    p += len(quote)
    scheme = re.compile(rb"bearer |basic |token ", re.IGNORECASE).match(w, p)
    s = scheme.end() if scheme else p
    chars = VALUE if quote else rb"[A-Za-z0-9+/=_-]"
    if len(quote) == 1:
        chars = rb"(?:\\[\\%s]|%s)" % (quote, chars)
    elif quote:
        chars = rb"[ !#-&(-\[\]-_a-~]"
    value = re.compile(rb"(?:(?!-----)%s){0,256}" % chars).match(w, s).group()
    end = s + len(value)
    n = len(value)
    if b"://" in value or not 16 <= n <= 255 or not re.search(rb"\d", value):
        return None
    if not re.search(rb"[A-Za-z]", value) or not drawn(value, pii, bool(quote)):
        return None
    after = w[end : end + 1]
    if quote:
        if not w.startswith(quote, end):
            return None
    elif n < 20 or (after and 0x21 <= after[0] < 0x80 and after not in b"\"&'),;<\\]`|}"):
        return None
    bits = share(n) - sum(share(value.count(b)) for b in set(value))
    least = 6 if re.fullmatch(rb"[0-9A-Fa-f]+", value) else 7
    return (s, end) if bits * 2 >= least * 64 * n else None


def share(c: int) -> int:
    """64 c log2(c), rounded down."""
    return math.floor(64 * c * math.log2(c) + 1e-9)


def first(w: bytes, pii):
    for i in range(len(w)):
        b = w[i : i + 1]
        for kind, found in (
            ("secret", secret(w, i, pii) if b in (b":", b"=") else None),
            ("private_key", block(w, i) if b == b"-" else None),
            ("key", key(w, i, pii)),
        ):
            if found:
                yield kind, found
