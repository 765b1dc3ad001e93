"""The table of common words: a bit for each of 2**20 hashes, made from `common.npy`.

The file holds the bits (uint32, ascending) of 18,256 words: the 8,000 in most documents of English
encyclopaedia articles, textbooks and lecture notes; 3,000 each of French, Portuguese and Swedish
web pages; of Arabic and Catalan ones, which are few, the 1,402 and 1,619 that three pages have.
`benchmarks/common_words.py` made it; it is frozen, since all masks depend on it. They set 18,088
bits, so that 1.7 % of other words share a bit with one of them and are taken for common.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

from ...documents.text import text_view
from . import _kernels as kernels

FILE = Path(__file__).with_name("common.npy")
BYTES = 1 << 17


@cache
def common() -> np.ndarray:
    """The table, uint8[2**17], read-only."""
    bits = np.zeros(1 << 20, np.uint8)
    bits[np.load(FILE)] = 1
    table = np.packbits(bits, bitorder="little")
    table.flags.writeable = False
    return table


# Words of notices on cookies, rights and scripts, in some languages of the web.
NOTICES = (
    "cookie cookies copyright reserved privacy gdpr javascript browser newsletter subscribe "
    "license licensed licence trademark trademarks disclaimer unsubscribe kakor webbplatsen "
    "datenschutz rechte vorbehalten impressum confidentialité réservés reservados privacidad "
    "privacidade galletas riservati informativa voorbehouden rettigheter oikeudet evästeitä"
)

# Parameters of a URL that name a visit or the way to a page, and no page; beside `utm_*`. Without
# `sid`, `ref` and `share`, by which some sites name their pages.
VISITS = (
    "sessionid session_id phpsessid jsessionid aspsessionid cfid cftoken fbclid gclid dclid "
    "gclsrc gbraid wbraid gad_source srsltid msclkid yclid twclid ttclid li_fat_id mc_cid mc_eid "
    "mkt_tok igshid igsh _ga _gl _hsenc _hsmi ref_src ref_url"
)


@cache
def ignored() -> np.ndarray:
    """Hashes of `VISITS`, as `hash_addresses` reads names."""
    found = np.zeros(len(VISITS.split()), np.uint64)
    for i, name in enumerate(VISITS.split()):
        value = 0
        for byte in name.encode():
            value = (value * int(kernels.BASE) + byte) & 0xFFFFFFFFFFFFFFFF
        found[i] = value
    found.flags.writeable = False
    return found


@cache
def notices() -> np.ndarray:
    """A table like `common` of the words of `NOTICES`."""
    return bits_of(NOTICES.split())


def bits_of(words: list[str]) -> np.ndarray:
    """A table like `common` of some words."""
    table = np.zeros(BYTES, np.uint8)
    view = text_view(pa.array(words, pa.large_string()))
    kernels.known_words(view.data, view.offsets, table)
    table.flags.writeable = False
    return table


def held(table: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Whether a table has the bit of each word: uint64[n] hashes -> int64[n], 0 or 1."""
    bit = words >> np.uint64(44)
    return (table[bit >> np.uint64(3)] >> (bit & np.uint64(7)).astype(np.uint8)).astype(
        np.int64
    ) & 1
