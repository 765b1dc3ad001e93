"""The scope of a duplicate stage: the whole corpus, a crawl (the documents' `dump`) or a source.

A scope other than the corpus goes into the keys by which documents meet, as a hash of its name, so
that no later round knows of it. FineWeb, for one, removes near duplicates within a crawl and leaves
those between crawls.
"""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..documents.errors import UsageError, did_you_mean

SCOPES = {"corpus": None, "crawl": "dump", "source": "source"}  # scope -> column of documents


def check_scope(scope: str, where: str) -> None:
    """UsageError for an unknown scope."""
    if scope not in SCOPES:
        msg = f"{where}: unknown scope {scope!r}{did_you_mean(scope, SCOPES)}"
        raise UsageError(msg + f"; one of {', '.join(SCOPES)}")


def check_exemplars(exemplars: int, where: str) -> None:
    """UsageError for fewer than one."""
    if exemplars < 1:
        msg = f"{where}: exemplars is {exemplars}, expected >= 1 document of a cluster that stays"
        raise UsageError(msg)


def within(keys: np.ndarray, batch: pa.RecordBatch, scope: str) -> np.ndarray:
    """Keys uint64[rows, ...] that differ between scopes; 0 (no key) stays 0.

    Documents that name no crawl share one.
    """
    name = SCOPES[scope]
    if name is None:
        return keys
    coded = pc.dictionary_encode(batch.column(name).fill_null(""))
    salts = [
        int.from_bytes(hashlib.blake2b(v.encode(), digest_size=8).digest(), "little")
        for v in coded.dictionary.to_pylist()
    ]
    salt = np.array(salts or [0], np.uint64)[coded.indices.to_numpy(zero_copy_only=False)]
    salt = salt.reshape(-1, *[1] * (keys.ndim - 1))
    return np.where(keys == 0, keys, np.where(keys == salt, np.uint64(1), keys ^ salt))
