"""What `filters.pii` finds, in plain Python: try every rule at every byte, mask, begin again."""

from __future__ import annotations

import math
import re

GONE = b"\x01"
WORD = re.compile(rb"[A-Za-z0-9_]")


def word(w: bytes, i: int) -> bool:
    return 0 <= i < len(w) and WORD.match(w, i) is not None


def before(w: bytes, i: int) -> bytes:
    return w[i - 1 : i] if i else b""


def email(w: bytes, at: int, pii, reserved: bool):
    left = re.search(rb"[A-Za-z0-9._%+-]*\Z", w[max(0, at - 70) : at]).group()
    host = re.match(rb"[A-Za-z0-9](?:[A-Za-z0-9-]|\.(?=[A-Za-z0-9]))*", w[at + 1 :])
    local = left.lstrip(b".%+-")
    if len(left) > 64 or not local or local.endswith(b".") or not host or host.end() > 254:
        return None
    if b"." not in host.group():
        return None
    label = host.group().rsplit(b".", 1)[1].rstrip(b"-")
    end = at + 1 + len(host.group().rstrip(b"-"))
    coded = len(label) > 4 and label[2:4] == b"--"
    if not 2 <= len(label) <= 24 or not (coded or re.fullmatch(rb"[A-Za-z]+", label)):
        return None
    tail = w[at:end].lower()
    if w[end : end + 1] in (b"(", b"[") or tail.endswith(
        tuple(p.encode() for p in pii.PICTURES.split())
    ):
        return None
    if not reserved and tail.endswith(tuple(h.encode() for h in pii.HOSTS.split())):
        return None
    return None if local == b"git" else (at - len(local), end)


def ipv4(w: bytes, i: int, pii, reserved: bool):
    if word(w, i - 1) or before(w, i) == b".":
        return None
    schemed = w[:i].endswith(b"//")
    if before(w, i) == b"/" and not schemed:
        return None
    m = re.compile(
        rb"(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})\.(0|[1-9]\d{0,2})"
    ).match(w, i)
    if not m or word(w, m.end()) or re.compile(rb"\.[A-Za-z0-9]").match(w, m.end()):
        return None
    a, b, c, d = map(int, m.groups())
    if max(a, b, c, d) > 255 or not (schemed or before(w, i) == b"@" or max(a, b, c, d) > 99):
        return None
    if w[:i].lower().endswith(tuple(v.encode() for v in pii.VERSIONS)):
        return None
    private = (
        a in (0, 10, 127)
        or a >= 224
        or (a, b) in ((169, 254), (192, 168), (198, 18), (198, 19))
        or (a == 172 and 16 <= b < 32)
        or (a == 100 and 64 <= b < 128)
        or (a, b, c) in ((192, 0, 0), (192, 0, 2), (198, 51, 100), (203, 0, 113))
    )
    return None if private and not reserved else (i, m.end())


def ipv6(w: bytes, at: int, reserved: bool):
    left = re.search(rb"[0-9A-Fa-f:]*\Z", w[max(0, at - 46) : at]).group()
    s = at - len(left)
    run = re.compile(rb"[0-9A-Fa-f:]*").match(w, s).group()[:46]
    if len(run) > 45 or word(w, s - 1) or word(w, s + len(run)):
        return None
    text = run[:-1] if run.endswith(b":") and not run.endswith(b"::") else run
    if b":::" in text or text.count(b"::") > 1 or (text.startswith(b":") and text[:2] != b"::"):
        return None
    groups = [g for g in text.split(b":") if g]
    if any(len(g) > 4 for g in groups) or not 3 <= len(groups) <= (7 if b"::" in text else 8):
        return None
    if b"::" not in text and len(groups) != 8:
        return None
    first, second = int(groups[0], 16), int(groups[1], 16)
    if not 0x2000 <= first < 0x4000 or (not reserved and (first, second) == (0x2001, 0x0DB8)):
        return None
    return s, s + len(text)


def luhn(digits: str) -> bool:
    total = 0
    for t, d in enumerate(map(int, reversed(digits))):
        total += d if t % 2 == 0 else sum(divmod(2 * d, 10))
    return total % 10 == 0


ISSUERS = (
    r"4(\d{12}|\d{15}|\d{18})",
    r"5[1-5]\d{14}",
    r"3[47]\d{13}",
    r"(6011|64[4-9]\d|65\d\d|62\d\d)\d{12,15}",
    r"(30[0-5]|36\d|38\d)\d{11}",
)


def issued(digits: str) -> bool:
    four = int(digits[:4])
    if 2221 <= four <= 2720:
        return len(digits) == 16
    if 3528 <= four <= 3589 and len(digits) >= 16:
        return True
    return any(re.fullmatch(form, digits) for form in ISSUERS)


CARD = re.compile(
    rb"\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?!\d)|\d{4}([ -])\d{6}\2\d{5}(?!\d)|\d{13,19}(?!\d)"
)


def card(w: bytes, i: int):
    if word(w, i - 1) or (before(w, i) and before(w, i) in b".,-/+#=&$%"):
        return None
    m = CARD.match(w, i)
    if not m or word(w, m.end()) or re.compile(rb"[-.,]\d").match(w, m.end()):
        return None
    digits = re.sub(rb"\D", b"", m.group()).decode()
    return (i, m.end()) if issued(digits) and luhn(digits) else None


AMERICAN = re.compile(
    rb"(?:1[ .-])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[.-])[2-9]\d\d[.-]\d{4}(?![A-Za-z0-9_])(?![-.]\d)"
)
GROUP = re.compile(rb"\d{1,20}")
GAP = re.compile(rb"[ ()./-]{1,3}(?=\d)")


def number(w: bytes, i: int, least: int):
    total, end, p = 0, None, i
    while True:
        m = GROUP.match(w, p)
        size = m.end() - p
        if total + size > 15:
            break
        total += size
        end = m.end()
        gap = GAP.match(w, end) if size < 20 else None
        if not gap or (total >= 10 and gap.group() != b"-"):
            break
        p = gap.end()
    return None if end is None or total < least or word(w, end) else end


def phone(w: bytes, i: int, pii):
    if w[i : i + 1] == b"+":
        if word(w, i - 1) or before(w, i) == b"+" or not re.compile(rb"[1-9]").match(w, i + 1):
            return None
        end = number(w, i + 1, 8)
        return (i, end) if end else None
    if not word(w, i - 1) and not (before(w, i) and before(w, i) in b".-/+#=&"):
        m = AMERICAN.match(w, i)
        if m:
            return i, m.end()
    first = i + (w[i : i + 1] == b"(")
    if word(w, i - 1) or not re.compile(rb"\d").match(w, first):
        return None
    gap = len(re.search(rb"[ .:(\t]*\Z", w[:i]).group())
    head = w[: i - min(gap, 4)]
    given = [label.replace("|", " ") for label in pii.LABELS.split()]
    labels = [w.encode().lower() for v in given for w in (v, v.upper(), v.title())]
    fits = [label for label in labels if head.lower().endswith(label)]
    if not fits:
        return None
    size = len(max(fits, key=len))
    cut = len(head) - size
    if head[cut] < 0x80 and re.search(rb"[A-Za-z]\Z", head[:cut]):
        return None
    end = number(w, first, 6)
    return (i, end) if end else None


def iban(w: bytes, i: int, pii):
    sizes = {each[:2].encode(): int(each[2:]) for each in pii.IBANS.split()}
    size = sizes.get(w[i : i + 2])
    if size is None or word(w, i - 1):
        return None
    m = re.compile(rb"[A-Z]{2}\d\d(?: ?[A-Z0-9]){%d}" % (size - 4)).match(w, i)
    if not m or word(w, m.end()):
        return None
    text = m.group().replace(b" ", b"").decode()
    value = int("".join(str(int(c, 36)) for c in text[4:] + text[:4]))
    return (i, m.end()) if value % 97 == 1 else None


def key(w: bytes, i: int, pii):
    if word(w, i - 1):
        return None
    sets = (rb"[A-Z0-9]", rb"[A-Za-z0-9]", rb"[A-Za-z0-9_-]", rb"[A-Za-z0-9_.-]", rb"[A-Za-z0-9/]")
    for prefix, least, most, kind, dots in pii.FORMS:
        if not w.startswith(prefix.encode(), i):
            continue
        tail = re.compile(sets[kind] + b"{0,%d}" % (most + 1)).match(w, i + len(prefix)).group()
        tail = tail[: (w[i + len(prefix) :].find(b"-----") + 1 or len(w) + 1) - 1]
        if kind == 3:
            whole = prefix.encode() + tail
            tail = (
                whole.rstrip(b".")[len(prefix) :] if len(whole.rstrip(b".")) > len(prefix) else b""
            )
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


VALUE = rb"[!#%&*+./0-9:=?@A-Z\[\]\\^_a-z~-]"


def secret(w: bytes, at: int, pii):
    names = "|".join(map(re.escape, pii.NAMES.split()))
    tails = "|".join(map(re.escape, pii.TAILS.split()))
    head = rb"(?:%s)(?:%s)?[\"'`]?[ \t]{0,32}" % (names.encode(), tails.encode())
    typed = rb"(?:%s:[ \t]{0,32}[\"'`]?[A-Za-z0-9_.\[\]]{1,24}[\"'`]?[ \t]{0,32})" % head
    form = rb"(?:%s|%s)\Z" % (head, typed) if w[at : at + 1] == b"=" else rb"(?:%s)\Z" % head
    if not re.search(form, w[max(0, at - 250) : at], re.IGNORECASE):
        return None
    p = re.compile(rb"[=>]{0,2}[ \t]{0,32}").match(w, at + 1).end()
    quote = w[p : p + 1] if w[p : p + 1] in (b'"', b"'", b"`") else b""
    p += len(quote)
    scheme = re.compile(rb"bearer |basic |token ", re.IGNORECASE).match(w, p)
    s = scheme.end() if scheme else p
    chars = VALUE if quote else rb"[A-Za-z0-9+/=_-]"
    value = re.compile(rb"(?:(?!-----)%s){0,256}" % chars).match(w, s).group()
    end = s + len(value)
    n = len(value)
    kinds = re.sub(rb"[A-Z]", b"U", re.sub(rb"[a-z]", b"l", re.sub(rb"[0-9]", b"1", value)))
    pairs = [kinds[t : t + 2] for t in range(n - 1)]
    changes = [b for b in pairs if re.fullmatch(rb"[Ul1]{2}", b) and b[0] != b[1]]
    mixed = [b for b in changes if b"1" in b]
    if b"://" in value or not 16 <= n <= 255 or not re.search(rb"\d", value):
        return None
    if not re.search(rb"[A-Za-z]", value) or (len(mixed) < 3 and 2 * len(changes) < n):
        return None
    after = w[end : end + 1]
    if quote:
        if after != quote:
            return None
    elif n < 20 or (after and 0x21 <= after[0] < 0x80 and after not in b"\"&'),;<\\]`|}"):
        return None
    bits = share(n) - sum(share(value.count(b)) for b in set(value))
    least = 6 if re.fullmatch(rb"[0-9A-Fa-f]+", value) else 7
    return (s, end) if bits * 2 >= least * 64 * n else None


def share(c: int) -> int:
    """64 c log2(c), rounded down."""
    return math.floor(64 * c * math.log2(c) + 1e-9)


def _first_secret(w: bytes, pii):
    for i in range(len(w)):
        b = w[i : i + 1]
        for kind, found in (
            ("secret", secret(w, i, pii) if b in (b":", b"=") else None),
            ("private_key", block(w, i) if b == b"-" else None),
            ("key", key(w, i, pii)),
        ):
            if found:
                yield kind, found


def _first_data(w: bytes, pii, reserved: bool):
    for i in range(len(w)):
        b = w[i : i + 1]
        digit = b.isdigit()
        for kind, found in (
            ("email", email(w, i, pii, reserved) if b == b"@" else None),
            ("ipv6", ipv6(w, i, reserved) if re.compile(rb":[0-9A-Fa-f:]").match(w, i) else None),
            ("ipv4", ipv4(w, i, pii, reserved) if digit else None),
            ("card", card(w, i) if digit else None),
            ("phone", phone(w, i, pii) if re.compile(rb"\d|[+(]\d").match(w, i) else None),
            ("iban", iban(w, i, pii)),
        ):
            if found:
                yield kind, found


def find(text: bytes, pii, reserved: bool = False) -> list[tuple[int, int, str]]:
    """(start, length, kind) of all that is masked in a text, in order."""
    w = text
    found = []
    rules = (
        lambda w: _first_secret(w, pii),
        lambda w: _first_data(w, pii, reserved),
    )
    before = None
    while w != before:
        before = w
        for rule in rules:
            while hit := next(rule(w), None):
                kind, (s, e) = hit
                found.append((s, e - s, kind))
                w = w[:s] + GONE * (e - s) + w[e:]
    return sorted(found)
