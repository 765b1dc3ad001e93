"""Plain-Python twins of mixing's kernels and short cuts, and a small tokenised corpus."""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

EXTENT = 4 << 20
TOKENIZER = "a-tokenizer"
EOS = 1


def document_tokens(number: int, length: int) -> list[int]:
    """The tokens of the corpus' document `number`: no two alike, an end token inside some."""
    body = [2 + (number * 7919 + i * (2 * number + 1)) % 60_000 for i in range(length - 1)]
    if number % 5 == 0 and length > 4:
        body[2] = EOS
    return [*body, EOS]


def make_corpus(folder: Path, documents: list[dict], shards: int = 2) -> tuple[pa.Table, dict]:
    """Token shards of `documents` (tokens, source, language, ...), a catalogue, the digests."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, digests = [], {}
    per = -(-len(documents) // shards)
    for s in range(shards):
        name = f"part-{s:03d}"
        mine = documents[s * per : (s + 1) * per]
        if not mine:
            continue
        numbers = range(s * per, s * per + len(mine))
        flat = [
            t for n, d in zip(numbers, mine, strict=True) for t in document_tokens(n, d["tokens"])
        ]
        data = np.array(flat, dtype="<u2").tobytes()
        (folder / f"{name}.bin").write_bytes(data)
        ids = [hashlib.blake2b(str(n).encode(), digest_size=16).digest() for n in numbers]
        digests[name] = hashlib.blake2b(data, digest_size=16).hexdigest()
        index = {
            "format": 2,
            "dtype": "uint16",
            "documents": len(mine),
            "tokens": len(flat),
            "tokenizer": TOKENIZER,
            "eos_id": EOS,
            "bos_id": None,
            "size": len(data),
            "extent": EXTENT,
            "crc32": [zlib.crc32(data[i : i + EXTENT]) for i in range(0, len(data), EXTENT)],
            "digest": digests[name],
            "ends": _save(
                folder / f"{name}.ends.npy", np.cumsum([d["tokens"] for d in mine]), "<u8"
            ),
            "ids": _save(
                folder / f"{name}.ids.npy",
                np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16),
                "u1",
            ),
            "unlearnt": _save(folder / f"{name}.unlearnt.npy", np.zeros((0, 2)), "<u8")
            | {"spans": 0},
        }
        (folder / f"{name}.index.json").write_text(json.dumps(index))
        for doc, (one, d) in enumerate(zip(ids, mine, strict=True)):
            blank = dict.fromkeys(("source", "language", "dump", "license"))
            rows.append({**blank, **d, "shard": name, "doc": doc, "id": one})
    return pa.Table.from_pylist(rows, schema=CATALOG), digests


CATALOG = pa.schema(
    [
        ("shard", pa.string()),
        ("doc", pa.uint32()),
        ("id", pa.binary(16)),
        ("tokens", pa.uint32()),
        ("source", pa.string()),
        ("language", pa.string()),
        ("dump", pa.string()),
        ("license", pa.string()),
    ]
)


def _save(path: Path, array: np.ndarray, dtype: str) -> dict:
    np.save(path, array.astype(dtype))
    raw = path.read_bytes()
    return {"size": len(raw), "crc32": zlib.crc32(raw)}


def make_plan(
    folder: Path,
    mapping: dict | None = None,
    documents: list[dict] | None = None,
    shards: int = 2,
) -> Path:
    """The folder of a plan below `folder`, over token shards in `folder / "tokens"`."""
    made = make_corpus(folder / "tokens", documents or mixed_documents(), shards)
    return compiled((None, *made, folder), mapping)


def compiled(world: tuple, mapping: dict | None = None, catalog: Any = None, out: str = "plans"):
    """The folder of a plan below `out` of a world, which is (_, catalogue, digests, folder)."""
    from gristmill.mixing import MixSpec, compile_plan

    _, table, digests, folder = world
    name = compile_plan(
        table if catalog is None else catalog,
        MixSpec.parse(THREE_STAGES if mapping is None else mapping),
        tokens_digests=digests,
        tokenizer_digest=TOKENIZER,
        out=folder / out,
    )
    return folder / out / name


def mixed_documents(count: int = 120) -> list[dict]:
    """Web, code and a few long documents, deterministic."""
    out = []
    for n in range(count):
        source = ("web", "web", "code", "books")[n % 4]
        length = 3 + (n * 37) % 90 if source != "books" else 150 + (n * 53) % 300
        out.append(
            {
                "tokens": length,
                "source": source,
                "language": ("eng_Latn", "deu_Latn", None)[n % 3],
                "license": "mit" if source == "code" else None,
            }
        )
    return out


THREE_STAGES = {
    "seed": 7,
    "block": 16,
    "global_batch": 4,
    "slices": {
        "web": {"source": ["web"]},
        "code": {"source": "code", "license": ["mit"]},
        "all": {},
        "long": {"min_tokens": 100},
    },
    "stages": [
        {
            "name": "base",
            "tokens": 64 * 120,
            "sequence_length": 64,
            "packing": "concat",
            "mask": "none",
            "weights": {"web": 0.6, "code": 0.2, "all": 0.2},
        },
        {
            "name": "long_context",
            "tokens": 256 * 30,
            "sequence_length": 256,
            "packing": "best_fit",
            "global_batch": 2,
            "max_epochs": {"long": 5},
            "weights": {"long": 2, "web": 1},
        },
        {
            "name": "agentic",
            "tokens": 64 * 40,
            "sequence_length": 64,
            "packing": "concat",
            "max_epochs": 6,
            "weights": {"code": 0.5, "web": 0.5},
        },
    ],
}


def best_fit(lengths: list[int], capacity: int) -> tuple[list[int], int]:
    """Best-fit-decreasing by looking at every open bin; equal rooms: the bin filled last."""
    room: list[int] = []
    touched: list[int] = []
    bins = [0] * len(lengths)
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], i))
    for clock, item in enumerate(order):
        length = lengths[item]
        fits = [b for b in range(len(room)) if room[b] >= length]
        if fits:
            chosen = min(fits, key=lambda b: (room[b], -touched[b]))
        else:
            chosen = len(room)
            room.append(capacity)
            touched.append(0)
        room[chosen] -= length
        touched[chosen] = clock
        bins[item] = chosen
    return bins, len(room)


def concat(lengths: list[int], window: int) -> list[list[tuple[int, int, int]]]:
    """Windows of (document, start, length): one stream of documents, cut every `window` tokens."""
    windows: list[list[tuple[int, int, int]]] = [[]]
    room = window
    for document, length in enumerate(lengths):
        start = 0
        while start < length:
            if room == 0:
                windows.append([])
                room = window
            taken = min(room, length - start)
            windows[-1].append((document, start, taken))
            start += taken
            room -= taken
    return windows


def stretches(raw: bytes, cuts: list[tuple[int, int]], places: set[int]) -> tuple[bytes, list[int]]:
    """What `mixing.recount` counts of one text with `cuts` (start, length), and where they start.

    `places`: where the known splits can be cut. Of these only places before a space are taken, and
    only where the character before and the space stand between two edits.
    """
    gaps = zip([0, *(s + n for s, n in cuts)], [*(s for s, _ in cuts), len(raw)], strict=True)
    left_out = []  # of a gap what lies between its first place and its last
    for number, (low, high) in enumerate(gaps):
        sound = [
            p
            for p in sorted(places)
            if p < high and raw[p] == 0x20 and p - len(_before(raw, p)) >= low
        ]
        if number == 0:
            left_out.append((0, sound[-1] if sound else 0))
        elif number == len(cuts):
            left_out.append((sound[0] if sound else len(raw), len(raw)))
        elif sound:
            left_out.append((sound[0], sound[-1]))
    bounds = zip(left_out, [*left_out[1:], (len(raw), 0)], strict=True)
    out = b"".join(raw[first:last] for (_, first), (last, _) in bounds)
    return out, [s - sum(b - a for a, b in left_out if b <= s) for s, _ in cuts]


def _before(raw: bytes, at: int) -> bytes:
    """The character that ends at `at`."""
    start = at - 1
    while raw[start] & 0xC0 == 0x80:
        start -= 1
    return raw[start:at]
