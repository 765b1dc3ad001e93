"""Near duplicates against the truth: exact Jaccard of all pairs of 20,000 real documents.

    python benchmarks/dedup_truth.py [DATA] [--cache FOLDER] [--no-peers]

The truth is an exact join: an inverted index of all shingle hashes (64 bits), for every document
the number of shingles shared with each document before it, Jaccard from integers; nothing is
sampled or sketched. Against it stand recall of candidates by similarity, for Fast Similarity
Sketching 32 x 8 and classic MinHash 14 x 8 (`scheme: datasketch`), beside theory; what the whole
stage removes; and what datasketch, rensa and datatrove remove of the same texts, each with the
settings that its own examples use. Peers stand in an environment of their own below --cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from _dedup import (
    PEERS,
    PEPS,
    cache_folder,
    column_of,
    data_folder,
    decide,
    documents_of,
    graded,
    load,
)
from numba import njit
from peers.venv import UnavailableError, environment

from gristmill.dedup import NearDuplicates, candidate_probability
from gristmill.dedup.classic import lean_minhash, signatures
from gristmill.dedup.rank import matrix
from gristmill.dedup.verify import shingle_sets

FSS = NearDuplicates()
CLASSIC = NearDuplicates(preset="fineweb", scheme="datasketch")
EDGES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0)
REAL = {  # file, how many, field
    "encyclopaedia": ("c-encyclopedia-enwiki/develop.jsonl.gz", 7_000, "text"),
    "web pages of 20 languages": ("f-multilingual-hplt/develop_unlabelled.jsonl.gz", 7_073, "text"),
    "mails": ("c-spam-spamassassin/develop.jsonl.gz", 2_250, "text"),
    "code": ("e-code-repos/develop.jsonl.gz", 1_473, "text"),
    "articles": ("d-dup-minhash-articles/articles_1000.jsonl.gz", 1_000, "text"),
    "revisions": (PEPS, 704, "text"),
    "parallel texts": ("f-multilingual-udhr/udhr.jsonl.gz", 500, "text"),
}
SHORT = {
    "sentences": ("f-multilingual-lingua/sentences.jsonl.gz", 29_421, "text"),
    "questions": ("g-benchmarks/mmlu_test.jsonl.gz", 14_099, "question"),
    "exercises": ("g-benchmarks/gsm8k_test.jsonl.gz", 1_319, "question"),
}


@njit(cache=True)
def join(docs, group, begin, starts, ends, places, sizes, limit, out):
    """Pairs whose Jaccard is at least limit[0] / limit[1]: (a, b, shared), b before a.

    `docs` are the documents of all (hash, document), sorted by both; place `places[p]` of the p-th
    shingle of a document leads to its own entry, `begin[group]` to the first of that hash.
    """
    shared = np.zeros(len(sizes), np.int64)
    touched = np.empty(len(sizes), np.int64)
    found = 0
    for a in range(len(sizes)):
        count = 0
        for p in range(starts[a], ends[a]):
            at = places[p]
            for q in range(begin[group[at]], at):
                b = docs[q]
                if shared[b] == 0:
                    touched[count] = b
                    count += 1
                shared[b] += 1
        for i in range(count):
            b = touched[i]
            either = sizes[a] + sizes[b] - shared[b]
            if shared[b] * limit[1] >= limit[0] * either:
                if found < len(out):
                    out[found, 0] = b
                    out[found, 1] = a
                    out[found, 2] = shared[b]
                    out[found, 3] = either
                found += 1
            shared[b] = 0
    return found


def truth(texts, least=(1, 2)):
    """int64[pairs, 4]: a, b, shared, either of all pairs at or above `least`, and the set sizes."""
    values, starts, ends = shingle_sets(column_of(texts), 5, 5)
    sizes = ends - starts
    flat = np.concatenate([values[s:e] for s, e in zip(starts, ends, strict=True)])
    owner = np.repeat(np.arange(len(texts)), sizes)
    order = np.lexsort((owner, flat))
    change = np.append(True, flat[order][1:] != flat[order][:-1])
    group = np.cumsum(change) - 1
    places = np.empty(len(flat), np.int64)
    places[order] = np.arange(len(flat))
    first = np.cumsum(sizes) - sizes
    room = 1 << 16
    while True:
        out = np.empty((room, 4), np.int64)
        found = join(
            owner[order], group, np.flatnonzero(change), first, first + sizes, places, sizes,
            np.array(least, np.int64), out,
        )  # fmt: skip
        if found <= room:
            return out[:found], sizes
        room = found


def recall(name, texts):
    """Share of the true pairs that bands make candidates, by similarity."""
    start = time.perf_counter()
    pairs, sizes = truth(texts)
    spent = time.perf_counter() - start
    words = [len(t.split()) for t in texts]
    median, tiny = int(np.median(words)), int((sizes == 0).sum())
    print(f"\n{name}: {len(texts):,} documents, median {median} words, {tiny} below a shingle")
    print(
        f"  all {len(texts) * (len(texts) - 1) // 2:,} pairs joined in {spent:.1f} s: "
        f"{len(pairs):,} at 0.5 or above"
    )
    print("  Jaccard          pairs |  FSS 32x8   theory |  MinHash 14x8   theory")
    near = pairs[:, 2] / pairs[:, 3]
    hits = {}
    for stage in (FSS, CLASSIC):
        keys = matrix(documents_of(stage, texts), "bands", stage.bands)
        hits[stage] = np.zeros(len(pairs), bool)
        for part in np.array_split(np.arange(len(pairs)), 50):
            a, b = pairs[part, 0], pairs[part, 1]
            hits[stage][part] = (keys[a] == keys[b]).any(axis=1)
    for low, high in zip(EDGES, (*EDGES[1:], 1.1), strict=True):
        part = (near >= low) & (near < high)
        number = int(part.sum())
        cells = []
        for stage in (FSS, CLASSIC):
            odds = [candidate_probability(s, stage.bands, stage.rows) for s in near[part]]
            share = hits[stage][part].mean() if number else float("nan")
            cells.append(f"{share:9.4f} {np.mean(odds) if number else float('nan'):8.4f}")
        label = "1" if low == 1 else f"{low:.2f} - {high:.2f}"
        print(f"  {label:12} {number:9,} | {cells[0]} |     {cells[1]}")
    return pairs


def proof(name, texts, pairs):
    """What the whole stage removes: every removal has a kept witness of true Jaccard >= 0.8."""
    found = decide(FSS, texts)
    place = [int.from_bytes(i, "big") for i in found["id"].to_pylist()]
    gone = {p for p, code in zip(place, found["code"].to_pylist(), strict=True) if code}
    known = {(a, b): (s, e) for a, b, s, e in pairs.tolist()}
    good = 0
    for at, row in zip(place, found.to_pylist(), strict=True):
        if row["code"]:
            proof_at = int.from_bytes(row["witness_id"], "big")
            key = (min(at, proof_at), max(at, proof_at))
            sizes = row["shared"], row["either"]
            near = known.get(key) == sizes and sizes[0] * 5 >= sizes[1] * 4
            good += near and proof_at not in gone
    print(f"  {name}: {len(gone):,} removed, {good:,} with a kept witness of true Jaccard >= 0.8")
    return gone


def judge(name, system, total, pairs, gone, seconds):
    """One line of the table: what was removed rightly, what was left, survivors."""
    close = pairs[pairs[:, 2] * 5 >= pairs[:, 3] * 4]
    alike = {}
    for a, b in close[:, :2].tolist():
        alike.setdefault(a, set()).add(b)
        alike.setdefault(b, set()).add(a)
    right = sum(any(o not in gone for o in alike.get(d, ())) for d in gone)
    left = sum(a not in gone and b not in gone for a, b in close[:, :2].tolist())
    print(
        f"  {name:22} {system:30} {1 - left / max(1, len(close)):8.4f} "
        f"{right / max(1, len(gone)):9.4f} {total - len(gone):9,} {seconds:9.2f}"
    )


def peers_of(python, texts, folder):
    """{system: (removed, seconds)} by peers/dedup_peers.py."""
    source = folder / "texts.jsonl"
    with source.open("w", encoding="utf-8") as file:
        for i, text in enumerate(texts):
            file.write(json.dumps({"id": str(i), "text": text}) + "\n")
    script = Path(__file__).parent / "peers" / "dedup_peers.py"
    done = subprocess.run(
        [str(python), str(script), str(source), str(folder)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stderr[-2000:])
        return {}
    return json.loads(done.stdout.splitlines()[-1])


def same_bits(python, texts, folder):
    """Signatures of 10,000 documents, by us and by datasketch itself."""
    part = texts[:10_000]
    lanes, _ = signatures(column_of(part), 5, 5, 128)
    np.save(folder / "ours.npy", lanes)
    (folder / "lean.bin").write_bytes(b"".join(map(lean_minhash, lanes)))
    script = Path(__file__).parent / "peers" / "dedup_peers.py"
    (folder / "tokens.json").write_text(json.dumps([spelled(t) for t in part]))
    done = subprocess.run(
        [str(python), str(script), "same", str(folder)], capture_output=True, text=True, check=False
    )
    print("\n" + (done.stdout.strip() or done.stderr[-2000:]))


def spelled(text):
    """Our tokens of a text, and how many make a shingle: what a datasketch user would feed."""
    from gristmill.dedup import _kernels as kernels
    from gristmill.documents.text import text_view

    view = text_view(pa.array([text], pa.large_string()))
    size = len(text.encode())
    out = np.empty(2 * size + 1, np.uint8)
    begins, ends = np.empty(size, np.int64), np.empty(size, np.int64)
    count, single = np.zeros(1, np.int64), np.zeros(1, np.int64)
    kernels.spell(view.data, view.offsets, out, begins, ends, count, single)
    raw = out.tobytes()
    return [raw[b:e].decode() for b, e in zip(begins[: count[0]], ends[: count[0]], strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="?")
    parser.add_argument("--cache", type=Path, default=cache_folder())
    parser.add_argument("--no-peers", action="store_true")
    asked = parser.parse_args()
    data = data_folder(asked.data)
    real = [t for path, n, field in REAL.values() for t in load(data / path, n, field)]
    short = [t for path, n, field in SHORT.values() for t in load(data / path, n, field)]
    short = [t for t in dict.fromkeys(short) if 5 <= len(t.split()) <= 60]
    articles = load(data / REAL["encyclopaedia"][0], 7_000)
    peps, planted = load(data / PEPS), load(data / REAL["articles"][0])
    real_pairs = recall("real documents", real)
    recall("articles with graded copies", list(graded(articles, most=0.16)))
    short_pairs = recall("short documents (5-60 words)", short[:20_000])
    graded_short = list(graded(short[:10_000], most=0.16))
    recall("short documents with graded copies", graded_short)
    print("\nprecision of the whole stage")
    proof("real documents", real, real_pairs)
    proof("short documents", short[:20_000], short_pairs)
    sets = {"PEP revisions": peps, "articles, planted": planted, "20,000 real": real}
    print(f"\n  {'removals at 0.8':22} {'system':30} {'recall':>8} precision survivors   seconds")
    try:
        where = asked.cache / "dedup-peers"
        python = None if asked.no_peers else environment(where, *PEERS)
    except UnavailableError as error:
        print(f"  no peers: {error}")
        python = None
    for name, texts in sets.items():
        pairs = real_pairs if name == "20,000 real" else truth(texts)[0]
        for stage, label in ((FSS, "gristmill, FSS 32x8"), (CLASSIC, "gristmill, MinHash 14x8")):
            start = time.perf_counter()
            found = decide(stage, texts)
            spent = time.perf_counter() - start
            gone = {
                int.from_bytes(i, "big")
                for i, code in zip(found["id"].to_pylist(), found["code"].to_pylist(), strict=True)
                if code
            }
            judge(name, label, len(texts), pairs, gone, spent)
        with tempfile.TemporaryDirectory() as folder:
            for label, (gone, spent) in (
                peers_of(python, texts, Path(folder)) if python else {}
            ).items():
                judge(name, label, len(texts), pairs, set(gone), spent)
    if python:
        with tempfile.TemporaryDirectory() as folder:
            same_bits(python, real, Path(folder))


if __name__ == "__main__":
    main()
