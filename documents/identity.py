"""Document ids: 128-bit BLAKE2b of (source, own identity or nothing, content as read, k).

k counts equal triples before it in the shard, so that two equal records have two ids. Ids name
content, not places: decisions are keyed by (shard, id).
"""

from __future__ import annotations

import hashlib


class IdMaker:
    """Gives ids in the order of a shard's documents."""

    def __init__(self, source: str) -> None:
        own = source.encode()
        self._source = hashlib.blake2b(len(own).to_bytes(8, "little") + own, digest_size=16)
        self._seen: dict[bytes, int] = {}

    def __call__(self, identity: str | None, content: bytes) -> bytes:
        """16 bytes; `content` is the text as read, UTF-8."""
        own = (identity or "").encode("utf-8", "surrogatepass")
        hasher = self._source.copy()  # each part is hashed after its length in 8 bytes
        hasher.update(len(own).to_bytes(8, "little") + own + len(content).to_bytes(8, "little"))
        hasher.update(content)
        triple = hasher.digest()
        k = self._seen.get(triple, 0)
        self._seen[triple] = k + 1
        hasher.update(k.to_bytes(8, "little"))
        return hasher.digest()


def shard_hash(name: str) -> int:
    """The uint64 by which decisions name a shard: BLAKE2b-64 of its name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
