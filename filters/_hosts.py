"""Hosts of URLs in one spelling, and their 64-bit keys.

One spelling: lower case; without scheme, user, port, path and the dots of the root; percent codes
undone; labels beyond ASCII in punycode by the codec of the standard library (IDNA 2003, whose
tables are those of Unicode 3.2 in every version of Python). What the codec refuses stays as it is.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

# RE2, over a whole column: the authority of a URL with or without its scheme, without its user.
_SCHEME = r"(?:(?i:https?:)[/\\]*|(?:[A-Za-z][A-Za-z0-9+.-]*:)?[/\\]{2,})?"
_AUTHORITY = rf"^\s*{_SCHEME}(?:[^/?#\\]*@)?(?P<host>[^/?#\\\s]*)"


@lru_cache(maxsize=1 << 16)
def host_of(authority: str) -> str:
    """The host of `user@host:port` (or of a host alone) in one spelling; empty when it has none."""
    host = authority.rpartition("@")[2].strip()
    if "%" in host:
        host = unquote(host)
    if host.startswith("["):  # IPv6
        return host[: host.find("]") + 1].lower()
    host = host.partition(":")[0]
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii")
        except UnicodeError:
            host = host.replace("\u3002", ".").replace("\uff0e", ".").replace("\uff61", ".")
    return host.strip(".").lower()


def key_of(text: str) -> int:
    """64 bits of BLAKE2b: what lists are kept as, 8 bytes an entry; `hashes` files hold its hex."""
    raw = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
    return int.from_bytes(raw, "big")


def parents(host: str) -> list[str]:
    """The host and the domains above it, the longest first, down to two labels."""
    if host.startswith("[") or host.replace(".", "").isdigit():
        return [host]  # an address has no domains above it
    labels = host.split(".")
    return [".".join(labels[i:]) for i in range(max(1, len(labels) - 1))]


def hosts(batch: pa.RecordBatch) -> tuple[np.ndarray, list[str]]:
    """Of each row the place of its host, int64[rows], and the hosts; "" where there is none.

    Each distinct authority is parsed once. A row without a URL has the host that its source states.
    """
    names = batch.schema.names
    authority = pa.array([""] * batch.num_rows, pa.string())
    if "url" in names:
        url = batch.column("url").cast(pa.string())
        authority = pc.struct_field(pc.extract_regex(url, _AUTHORITY), "host").fill_null("")
    if "host" in names:
        stated = batch.column("host").cast(pa.string()).fill_null("")
        authority = pc.if_else(pc.equal(authority, ""), stated, authority)
    coded = cast("pa.DictionaryArray", pc.dictionary_encode(authority))
    found: dict[str, int] = {}
    place = [found.setdefault(host_of(a), len(found)) for a in coded.dictionary.to_pylist()]
    return np.array(place, np.int64)[coded.indices.to_numpy(zero_copy_only=False)], list(found)
