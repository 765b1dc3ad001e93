"""Mask personal data and secrets: an editing stage. The rules, and what they leave alone.

- email: `name@host.tld`: 1 to 64 bytes of letters, digits and `._%+-` before, a host with a dot and
  a last label of 2 to 24 letters after. Not: `git@host`, pictures (`icon@2x.png`), what is called
  (`q@k.transpose(`), names kept for examples (RFC 2606, 6761).
- ipv4: four numbers up to 255, no leading zeros. Not: private, reserved and documentation ranges;
  after a slash (`Chrome/91.0.4.124`) unless after `//`; after "version" and the like; where all
  four are below 100 (numbers of versions and sections look so; 2.3% of addresses do).
- ipv6: global unicast (2000::/3) of three groups or more. Not: 2001:db8::/32.
- phone: `+` and 8 to 15 digits; North American `(ddd) ddd-dddd`, `ddd-ddd-dddd` and with dots; any
  6 to 15 digits after a word like "Tel.". Up to three of ` .-/()` between groups; after 10 digits
  it goes on across a lone dash only. Not: other national forms without such a word.
- iban: of 83 countries by length, check digits right (mod 97, ISO 13616).
- card: 13 to 19 digits, or 4-4-4-4 or 4-6-5, of an issuer's range and length, Luhn's digit right.
- key: by form: AWS, GitHub, GitLab, Slack, Google, Stripe, OpenAI, OpenRouter, Anthropic, Hugging
  Face, npm, PyPI, Docker, DigitalOcean, Shopify, SendGrid, JSON web tokens; with a digit; not those
  that end in EXAMPLE.
- private_key: from `-----BEGIN ... PRIVATE KEY-----` to its END, 64 letters of base64 or more in
  runs of 16; quoted, joined or with headers too; where the END is missing to the last of the runs.
- secret: 16 to 255 bytes in quotes given (`=`, `:`) to a name that ends in `password`, `secret`,
  `token`, `api_key` ..., a tail (`_prod`) or type (`: str`) after it or not; or 20 of
  `A-Za-z0-9+/=_-` without; of 3.5 bits of entropy a byte or more, 3 where all are hex digits. Not:
  names and words with numbers, where digits meet letters less than three times and the kind of
  character changes at less than half of the bytes; addresses.

Characters are never cut: all that is masked is ASCII. A masked text has nothing left to mask. Which
personal data a text may hold beyond these (names, addresses of streets) is not looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..documents.edits import Edits
from ..documents.errors import UsageError
from ..documents.stage import Measured
from ..documents.text import text_view
from . import _kernels_pii as kernels
from . import _kernels_secrets as secrets

KINDS = ("email", "ipv4", "ipv6", "phone", "iban", "card", "key", "private_key", "secret")

HOSTS = ".example .invalid .test .localhost .local @example.com .example.com @example.org"
HOSTS += " .example.org @example.net .example.net"
PICTURES = ".png .jpg .jpeg .gif .webp .svg .bmp .ico .avif"
VERSIONS = (
    "version ", "version: ", "release ", "firmware ", "build ", "ver. ", " v. ", "section ",
    "version=", "version='", 'version="', "version>", "version': '", 'version": "', "==",
    "table ", "figure ", "fig. ", "clause ", "article ", "chapter ", "§ ", "§", "§\u00a0",
    " ec ", "(ec ", "\nec ", "enzyme ec ", "ec number ",
)  # fmt: skip
LABELS = (
    "tel telephone telefon telefono teléfono telefone téléphone tél phone ph mobile mob "
    "fax telefax whatsapp handy mobil hotline phone|number telephone|number telefonnummer "
    "phone|no telephone|no tel|no mobile|no mobile|number fax|no "
    "тел телефон 电话 電話 手机 전화"
)
NAMES = (
    "password passwd passwort pwd secret token api_key apikey api-key access_key access-key "
    "auth_key accesskey account_key accountkey private_key secret_key secretkey client_secret "
    "credential credentials passphrase authorization"
)
TAILS = "_prod _production _dev _development _test _testing _stage _staging _live _1 _2"
SCHEMES = "bearer| basic| token|"
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


@cache
def _tables() -> tuple[Any, ...]:
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
    words = (
        _words(tuple(HOSTS.split())),
        _words(tuple(PICTURES.split())),
        _words(VERSIONS),
        _words(tuple(LABELS.split())),
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
    return classes, (words, lengths), ((lasts, thirds), named, block, keys, shares)


@cache
def _starts(on: tuple[bool, ...]) -> tuple[np.ndarray, ...]:
    """Pairs of bytes at which something may start, uint8[65536] for both kernels."""
    data, secret = np.zeros((256, 256), np.uint8), np.zeros((256, 256), np.uint8)
    of = dict(zip(KINDS, on, strict=True))
    alnum = np.concatenate([_UPPER, _LOWER, _DIGIT])
    if of["email"]:
        data[ord("@"), alnum] = 1
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


def find(
    data: np.ndarray, offsets: np.ndarray, on: tuple[bool, ...], reserved: bool
) -> tuple[np.ndarray, ...]:
    """All that is to be masked: rows, starts, lengths int64[n], kinds uint8[n], in order."""
    classes, of_data, of_secrets = _tables()
    data_may, secret_may = _starts(on)
    first = offsets[0]
    places = offsets - first
    text = data[first : offsets[-1]]
    flags = np.array(on, bool)
    tables, counts = (classes, *of_secrets), np.zeros(256, np.int64)
    other, what, number = (classes, *of_data), (flags, reserved), np.zeros(64, np.int64)

    def once(room: int) -> tuple[int, list[tuple[np.ndarray, ...]]]:
        work = text.copy()
        todo = np.ones(len(places) - 1, bool)
        most = 0
        parts: list[tuple[np.ndarray, ...]] = []

        def step(run: Callable[..., int], *args: Any) -> np.ndarray:
            nonlocal most
            out: tuple[np.ndarray, ...] = (
                *(np.empty(room, np.int64) for _ in range(3)),
                np.empty(room, np.uint8),
            )
            n = run(work, (places, todo), *args, out)
            most = max(most, n)
            parts.append(tuple(v[:n] for v in out))
            hit = np.zeros(len(todo), bool)
            row, start = parts[-1][0], parts[-1][1]
            before = work[np.maximum(0, (places[row] + start)[:, None] - np.arange(1, 16))]
            hit[row[(classes[before] & secrets.TOUCHED > 0).all(axis=1)]] = True  # a key is longer
            return hit

        while not parts or todo.any():  # a key that touched an address ends where that was
            step(secrets.find, secret_may, flags, tables, counts)
            todo = step(kernels.find, data_may, what, other, number)
        return most, parts

    room = 256 + len(text) // 1024
    most, outs = once(room)
    if most > room:
        most, outs = once(most)
    rows, starts, lengths_, kinds = (np.concatenate(pair) for pair in zip(*outs, strict=True))
    order = np.lexsort((starts, rows))
    return rows[order], starts[order], lengths_[order], kinds[order]


@dataclass(frozen=True, kw_only=True, slots=True)
class PII:
    """Mask e-mail and IP addresses, telephone, account and card numbers, keys and secrets.

    Each field of a kind holds its mask; `null` leaves the kind alone. Scores: int32 counts by kind.
    """

    email: str | None = "<EMAIL>"
    ipv4: str | None = "<IP>"
    ipv6: str | None = "<IP>"
    phone: str | None = "<PHONE>"
    iban: str | None = "<IBAN>"
    card: str | None = "<CARD>"
    key: str | None = "<KEY>"
    private_key: str | None = "<PRIVATE_KEY>"
    secret: str | None = "<SECRET>"  # noqa: S105 - a mask
    reserved: bool = False  # mask example.com, 192.168.0.1 and their like as well
    at_most: int | None = None  # drop texts with more: lists of addresses

    name: ClassVar[str] = "pii"
    revision: ClassVar[int] = 2
    reasons: ClassVar[tuple[str, ...]] = ("keep", "many")
    verdict_fields: ClassVar[frozenset[str]] = frozenset({"at_most"})

    def __post_init__(self) -> None:
        """Check the fields; UsageError names the one that is wrong."""
        for kind in KINDS:
            mask = getattr(self, kind)
            good = isinstance(mask, str) and mask[:1] + mask[-1:] in ("<>", "||")
            inside = mask[1:-1].replace("_", "") if isinstance(mask, str) else ""
            if mask is not None and not (good and inside.isascii() and inside.isalnum()):
                msg = (
                    f"{self.name}.{kind}: found {mask!r}, expected null or letters in <> or ||, "
                    f"such as <{kind.upper()}>, which no rule takes for what it masks"
                )
                raise UsageError(msg)
            if mask is not None and any(c.isdigit() for c in mask):  # without, no rule holds
                raw = np.frombuffer(mask.encode(), np.uint8)
                every = (True,) * len(KINDS)
                if len(find(raw, np.array([0, len(raw)], np.int64), every, reserved=True)[0]):
                    msg = f"{self.name}.{kind}: found {mask!r}, which is itself to be masked"
                    raise UsageError(msg)
        if self.at_most is not None and (
            isinstance(self.at_most, bool) or not isinstance(self.at_most, int) or self.at_most < 0
        ):
            msg = f"{self.name}.at_most: found {self.at_most!r}, expected null or a whole number"
            raise UsageError(msg)

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Find what is to be masked."""
        view = text_view(batch.column("text"))
        masks = tuple((getattr(self, kind) or "").encode() for kind in KINDS)
        on = tuple(getattr(self, kind) is not None for kind in KINDS)
        rows, starts, lengths, kinds = find(view.data, view.offsets, on, self.reserved)
        counts = np.zeros((view.rows, len(KINDS)), np.int32)
        np.add.at(counts, (rows, kinds), 1)
        scores = {kind: np.ascontiguousarray(counts[:, at]) for at, kind in enumerate(KINDS)}
        edits = Edits(
            rows=rows,
            starts=starts,
            lengths=lengths,
            reasons=kinds,
            reason_names=KINDS,
            replacements=masks,
            replacement=kinds,
        )
        return Measured(scores, edits=edits)

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Keep all, or those with at most `at_most` masks."""
        total = np.sum([scores[kind].astype(np.int64) for kind in KINDS], axis=0)
        limit = np.iinfo(np.int64).max if self.at_most is None else self.at_most
        return np.asarray(total > limit).astype(np.uint8)
