"""What the kernels of `pii` look things up in: lists of words, forms of keys, and tables of bytes.

Top-level domains (`tlds.txt`) are those of the root zone as of that file; one that comes later is
not known, so addresses in it are not found.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from . import _kernels_email as email
from ._characters import table

KINDS = ("email", "ipv4", "ipv6", "phone", "iban", "card", "key", "private_key", "secret")

RESERVED = "example invalid test localhost local"  # RFC 2606, 6761, 6762
HOSTS = "@example.com .example.com @example.org .example.org @example.net .example.net"
# Domains after which `(` and `[` are no call and no index
CALLED = (
    "com org net edu gov mil info biz eu us uk ie au nz ca za de ch fr be nl it es pt dk se fi "
    "pl cz sk hu ro gr tr ru ua il cn jp kr tw hk sg br mx ar cl co"
)
SHELLS = "ssh| scp| sftp| rsync| sshfs| mosh| ssh-copy-id| git|clone| ssh:// sftp://"
VERSIONS = (
    "version ", "version: ", "release ", "firmware ", "build ", "ver. ", " v. ", "section ",
    "version=", "version='", 'version="', "version>", "version': '", 'version": "', "==",
    "table ", "figure ", "fig. ", "clause ", "article ", "chapter ", "§ ", "§", "§\u00a0",
    " ec ", "(ec ", "\nec ", "enzyme ec ", "ec number ",
)  # fmt: skip
LABELS = (
    "tel telephone telefon telefono teléfono telefone telefoon téléphone tél tlf phone ph mobile "
    "mob fax telefax whatsapp handy mobil móvil celular hotline phone|number telephone|number "
    "telefonnummer phone|no telephone|no tel|no mobile|no mobile|number fax|no "
    "тел телефон факс моб 电话 電話 手机 传真 "
    "电话号码 手机号码 手机号 電話番号 携帯電話 전화 전화번호"
)
BRIEF = "ph"  # letters that stand for much else: seven digits at least
NUMBERED = (  # what is counted by numbers that look like those of telephones and cards
    "sku isbn issn upc ean asin gtin mpn p/n s/n serial serial|no serial|number part|no "
    "part|number item|no item|number item|id model model|no model|number order|no order|number "
    "order|id invoice invoice|no invoice|number ref ref|no reference tracking|no tracking|number "
    "lot lot|no batch|no batch|number ticket case|no case|number product|code product|id "
    "artikelnummer art.-nr bestellnummer bestell-nr rechnungsnummer référence"
)
NAMES = (
    "password passwd passwort pwd secret token api_key apikey api-key access_key access-key "
    "auth_key accesskey account_key accountkey private_key secret_key secretkey client_secret "
    "credential credentials passphrase authorization"
)
TAILS = "_prod _production _dev _development _test _testing _stage _staging _live _1 _2"
SCHEMES = "bearer| basic| token|"
# Code points that stand for ASCII: full width apart, the first digit of each script that has ten,
# spaces (and marks of direction, which stand between), dashes
DIGITS = (
    0x660, 0x6F0, 0x966, 0x9E6, 0xA66, 0xAE6, 0xB66, 0xBE6, 0xC66, 0xCE6, 0xD66, 0xE50, 0xED0,
    0xF20, 0x1040, 0x17E0, 0x1810,
)  # fmt: skip
SPACES = (
    0xA0, *range(0x2000, 0x2010), *range(0x202A, 0x2030), 0x205F, 0x2060, *range(0x2066, 0x206A),
    0x3000, 0xFEFF,
)  # fmt: skip
DASHES = (*range(0x2010, 0x2016), 0x2212, 0xFE58, 0xFE63)
# ISO 13616 registry: country and length
IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 "
    "DK18 DO28 EE20 EG29 ES24 FI18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 "
    "IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 "
    "MR27 MT31 MU30 NI28 NL18 NO15 PK24 PL28 PS29 PT25 QA29 RO24 RS22 SA24 SC31 SD18 SE24 SI19 "
    "SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
)
# Prefix, least and most bytes after it, letters (of `_SETS`), dots among them
FORMS = (
    ("AKIA", 16, 16, 0, 0), ("ASIA", 16, 16, 0, 0),
    ("ghp_", 36, 36, 1, 0), ("gho_", 36, 36, 1, 0), ("ghu_", 36, 36, 1, 0),
    ("ghs_", 36, 36, 1, 0), ("ghr_", 36, 76, 1, 0), ("github_pat_", 60, 100, 2, 0),
    ("glpat-", 20, 64, 2, 0), ("glrt-", 20, 64, 2, 0), ("gldt-", 20, 64, 2, 0),
    ("xoxb-", 20, 120, 2, 0), ("xoxp-", 20, 120, 2, 0), ("xoxa-", 20, 120, 2, 0),
    ("xoxr-", 20, 120, 2, 0), ("xoxs-", 20, 120, 2, 0), ("xoxe-", 20, 200, 2, 0),
    ("xapp-", 20, 160, 2, 0), ("hooks.slack.com/services/T", 30, 80, 4, 0),
    ("AIza", 35, 35, 2, 0), ("whsec_", 24, 64, 1, 0),
    ("sk_live_", 20, 120, 1, 0), ("rk_live_", 20, 120, 1, 0), ("sk_test_", 20, 120, 1, 0),
    ("sk-proj-", 40, 250, 2, 0), ("sk-svcacct-", 40, 250, 2, 0), ("sk-ant-", 40, 200, 2, 0),
    ("sk-or-v1-", 64, 64, 1, 0), ("sk-", 48, 48, 1, 0),
    ("hf_", 34, 34, 1, 0), ("npm_", 36, 36, 1, 0), ("pypi-AgEI", 50, 250, 2, 0),
    ("dop_v1_", 64, 64, 1, 0), ("dckr_pat_", 27, 27, 2, 0),
    ("shpat_", 32, 32, 1, 0), ("shpca_", 32, 32, 1, 0), ("shppa_", 32, 32, 1, 0),
    ("SG.", 60, 80, 3, 1), ("eyJ", 40, 4096, 3, 2),
)  # fmt: skip
PAIRS = sorted({form[0][:2] for form in FORMS})  # groups of forms
_UPPER, _LOWER, _DIGIT = (np.arange(*map(ord, pair)) for pair in ("A[", "a{", "0:"))


def _words(values: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Lower-case words, one after another, and int64[n + 1] bounds; the longest first."""
    given = [v.replace("|", " ") for v in values]
    raw = list({w.encode().lower() for v in given for w in (v, v.upper(), v.title())})
    raw.sort(key=lambda word: (-len(word), word))
    bounds = np.zeros(len(raw) + 1, np.int64)
    np.cumsum([len(r) for r in raw], out=bounds[1:])
    return np.frombuffer(b"".join(raw), np.uint8), bounds


def _set(chars: str, *ranges: np.ndarray) -> np.ndarray:
    out = np.zeros(256, np.uint8)
    out[[ord(c) for c in chars]] = 1
    for each in ranges:
        out[each] = 1
    return out


def _lasts(words: str) -> np.ndarray:
    """uint8[65536]: pairs of bytes that words end with, ASCII in lower case."""
    out = np.zeros(1 << 16, np.uint8)
    text, bounds = _words(tuple(words.split()))
    for end in bounds[1:].tolist():
        out[(int(text[end - 2]) | 32) << 8 | int(text[end - 1]) | 32] = 1
    return out


@cache
def stands() -> tuple[np.ndarray, np.ndarray]:
    """Pairs of bytes that what stands for ASCII begins with, and the ASCII byte by code point."""
    pairs, ascii_of = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, np.uint8)
    for first in DIGITS:
        ascii_of[first : first + 10] = np.arange(0x30, 0x3A)
    ascii_of[0xFF01:0xFF5F] = np.arange(0x21, 0x7F)
    ascii_of[[*SPACES]], ascii_of[[*DASHES]] = 0x20, 0x2D
    for code in np.flatnonzero(ascii_of).tolist():
        one, two, *_ = chr(code).encode()
        pairs[one << 8 | two] = 1
    return pairs, ascii_of


@cache
def top_domains() -> dict[bytes, int]:
    """Bits (of `_kernels_email`) of each top-level domain: `com`, `xn--p1ai`, `рф`, `РФ`."""
    lines = Path(__file__).with_name("tlds.txt").read_text("ascii").splitlines()
    found = {}
    for name in " ".join(line for line in lines if not line.startswith("#")).split():
        found[name.encode()] = 1 | email.CALLED * (name in CALLED.split())
        if name.startswith("xn--"):
            own = name[4:].encode().decode("punycode")
            found[own.encode()] = 1 | email.CALLED
            if own < "\u0530":  # scripts with capitals
                found[own.upper().encode()] = 1 | email.CALLED
    return found | {name.encode(): email.RESERVED for name in RESERVED.split()}


@cache
def of_email() -> tuple[Any, ...]:
    """All that `_kernels_email.find` looks things up in."""
    domains = top_domains()
    slots, bits = np.zeros(1 << 13, np.uint64), np.zeros(1 << 13, np.uint8)
    for name, kind in domains.items():
        h = 0xCBF29CE484222325
        for byte in name:
            h = (h ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
        at = (h >> 32) % len(slots)
        while slots[at]:
            at = (at + 1) % len(slots)
        slots[at], bits[at] = h | 1, kind
    words = _words(tuple(HOSTS.split())), _words(tuple(SHELLS.split()))
    return tables()[0], table(), (slots, bits), *words


@cache
def tables() -> tuple[Any, ...]:
    """All that the kernels look things up in: (classes, personal data, secrets)."""
    alnum = _set("", _UPPER, _LOWER, _DIGIT)
    printed = _set("", np.arange(0x21, 0x7F)) & ~_set("\"'`<>{}$(),;|")
    classes = (
        alnum
        + 2 * _set("", _DIGIT)
        + 4 * (alnum | _set("._%+-"))
        + 8 * _set("abcdefABCDEF", _DIGIT)
        + 16 * _set("", _UPPER)
        + 32 * _set("", _UPPER, _LOWER)
        + 64 * (alnum | _set("+/="))
        + 128 * printed
    ).astype(np.uint8)
    lengths = np.zeros(26 * 26, np.int64)
    for each in IBANS.split():
        lengths[(ord(each[0]) - 65) * 26 + ord(each[1]) - 65] = int(each[2:])
    labels = _words(tuple(LABELS.split()))
    briefs = [labels[0][a:z].tobytes().decode() in BRIEF.split() for a, z in pairwise(labels[1])]
    phones = (
        (labels, _lasts(LABELS)),
        (_words(tuple(NUMBERED.split())), _lasts(NUMBERED)),
        np.array(briefs, bool),
    )
    forms = sorted(FORMS, key=lambda form: form[0][:2])
    firsts = [form[0][:2] for form in forms]
    groups = [*(firsts.index(pair) for pair in PAIRS), len(forms)]
    prefixes = [form[0].encode() for form in forms]
    bounds = np.zeros(len(prefixes) + 1, np.int64)
    np.cumsum([len(p) for p in prefixes], out=bounds[1:])
    bare = (_set("", _UPPER, _DIGIT), alnum)
    sets = np.stack([*bare, *(alnum | _set(more) for more in ("_-", "_-.", "/"))])
    keys = (
        np.frombuffer(b"".join(prefixes), np.uint8),
        bounds,
        np.array([form[1:] for form in forms], np.int64),
        sets,
        _words(("example",)),
        np.array(groups, np.int64),
    )
    # 64 c log2(c), rounded down, in whole numbers: the same on every machine
    shares = np.array([0] + [(c ** (64 * c)).bit_length() - 1 for c in range(1, 257)], np.int64)
    ends = (("-----BEGIN ",), ("PRIVATE KEY-----", "PRIVATE KEY BLOCK-----"), ("-----END ",))
    block = tuple(_words(w) for w in ends)
    lasts = np.zeros(1 << 16, np.uint8)
    for mark, which in ((2, "tr ng es r]"), (1, f"{NAMES} {TAILS}")):  # types; names
        for end in which.split():
            lasts[(ord(end[-2]) | 32) << 8 | ord(end[-1]) | 32] = mark
    named = (*(_words(tuple(w.split())) for w in (NAMES, TAILS, SCHEMES)), lasts)
    thirds = np.stack([_set("".join(f[0][2] for f in FORMS if f[0][:2] == p)) for p in PAIRS])
    return (
        classes,
        (_words(VERSIONS), phones, lengths),
        ((lasts, thirds), named, block, keys, shares),
    )


@cache
def starts(on: tuple[bool, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of bytes at which something may start, uint8[65536] for data and for secrets."""
    data, secret = np.zeros((256, 256), np.uint8), np.zeros((256, 256), np.uint8)
    of = dict(zip(KINDS, on, strict=True))
    if of["ipv4"] or of["phone"] or of["card"]:
        data[_DIGIT] = 1
    if of["phone"]:
        data[ord("+"), _DIGIT] = data[ord("("), _DIGIT] = 1
    if of["ipv6"]:
        data[ord(":"), [*b"0123456789abcdefABCDEF:"]] = 1
    if of["iban"]:
        for each in IBANS.split():
            data[ord(each[0]), ord(each[1])] = 1
    if of["key"]:
        for group, pair in enumerate(PAIRS, 2):
            secret[ord(pair[0]), ord(pair[1])] = group
    if of["private_key"]:
        secret[ord("-"), ord("-")] = 1
    if of["secret"]:
        secret[[ord(":"), ord("=")]] = 1
    return data.reshape(-1), secret.reshape(-1)
