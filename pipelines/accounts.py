"""The account step: tokens of every document after every stage that edits, and the flow of a pass.

Bytes are proven from the edits; tokens by recounting. A cut moves token boundaries, so the tokens
of a document before and after do not differ by those of the cut: they are counted again around each
edit (`mixing.recount`), once for each reason that touched the document. Counts of an older file are
reused where the same edits stand, so that a changed threshold reads no text here either.

`accounts/<pass>/<shard>.parquet`: `id`, `tokens` (null: not here), `edits` (digest of all edits so
far, 0 = none), and for each editing stage `<stage>.edits`, `<stage>.deltas` (change by reason). The
sidecar's counts hold the flow rows [stage, language, account, reason, documents, bytes, tokens].
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..documents.edits import Edits, apply_edits, pick
from ..documents.errors import DamagedError
from ..documents.fingerprint import digest
from ..mixing.recount import token_deltas
from .columns import edits_from, schema_meta
from .flow import Flow, Languages
from .passes import Pass, attributes
from .steps import Counts, Facts, Step
from .texts import ShardTexts

if TYPE_CHECKING:
    from .run import Run

FORMAT = 1


def accounts(pass_name: str, shard: str) -> str:
    """Name of a pass's account of a shard."""
    return f"accounts/{pass_name}/{shard}.parquet"


class ReadAccountStep(Step):
    """Tokens of every document as read: `accounts/read/<shard>.parquet`."""

    name = "account-read"

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The account of a shard's documents."""
        return (accounts("read", key),)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """Documents, and their sizes."""
        return run.store.digests(f"documents/{key}.parquet", attributes("read", key))

    def fingerprint(self, run: Run, key: str) -> str:
        """The tokenizer."""
        return digest([FORMAT, run.tokenizer_identity, run.versions("pyarrow")])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Count tokens of every text."""
        (name,) = self.outputs(run, key)
        texts = ShardTexts(run, key, [])
        before = pq.ParquetFile(run.store.path(attributes("read", key)))
        flow = Flow()
        writer = pq.ParquetWriter(paths[name], _schema([]), compression="zstd")
        with writer:
            for group in range(texts.groups):
                table = before.read_row_group(group)
                tokens = run.encoder.count(texts.group(group))
                size = table.column("bytes").to_numpy()
                flow.book("read", None, "kept", "", len(tokens), int(size.sum()), int(tokens.sum()))
                columns = [table.column("id").combine_chunks(), pa.array(tokens, pa.int64())]
                columns.append(pa.array(np.zeros(len(tokens), np.uint64)))
                batch = pa.table(columns, schema=_schema([]))
                writer.write_table(batch, row_group_size=max(1, len(tokens)))
        facts.bytes = facts.text_bytes = texts.bytes_read
        return {name: {"flow": flow.rows()}}


def _schema(editing: list[str]) -> pa.Schema:
    fields = [
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("tokens", pa.int64()),
        pa.field("edits", pa.uint64(), nullable=False),
    ]
    for stage in editing:
        fields.append(pa.field(f"{stage}.edits", pa.uint64(), nullable=False))
        fields.append(pa.field(f"{stage}.deltas", pa.list_(pa.int64())))
    return pa.schema(fields)


class PassAccountStep(Step):
    """Tokens and flow of one pass: `accounts/<pass>/<shard>.parquet`."""

    def __init__(self, which: Pass, earlier: list[Pass]) -> None:
        self.which = which
        self.earlier = earlier
        self.name = f"account-{which.name}"

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The account of one shard in one pass."""
        return (accounts(self.which.name, key),)

    def _before(self) -> str:
        return self.earlier[-1].name if self.earlier else "read"

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """Documents, attributes of this pass and those before, the account before."""
        names = [f"documents/{key}.parquet", accounts(self._before(), key)]
        names += [attributes(n, key) for n in ("read", *(p.name for p in self.earlier))]
        return run.store.digests(*names, attributes(self.which.name, key))

    def fingerprint(self, run: Run, key: str) -> str:
        """The tokenizer."""
        return digest([FORMAT, run.tokenizer_identity, run.versions("pyarrow")])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Follow every row group through the pass."""
        (name,) = self.outputs(run, key)
        here = pq.ParquetFile(run.store.path(attributes(self.which.name, key)))
        stages = schema_meta(here.schema_arrow)["stages"]
        editing = [s["name"] for s in stages if s["edit_reasons"] is not None]
        schema = _schema(editing)
        shard = _ShardAccount(run, self, key, stages, here)
        with pq.ParquetWriter(paths[name], schema, compression="zstd") as writer:
            for group in range(here.num_row_groups):
                columns = shard.group(group)
                batch = pa.table(columns, schema=schema)
                writer.write_table(batch, row_group_size=max(1, batch.num_rows))
        facts.bytes = facts.text_bytes = shard.texts.bytes_read
        return {name: {"flow": shard.flow.rows()}}


class _ShardAccount:
    """Follows one shard's documents through one pass, group by group."""

    def __init__(
        self, run: Run, step: PassAccountStep, shard: str, stages: list[dict[str, Any]], here: Any
    ) -> None:
        names = [p.name for p in step.earlier]
        self._run = run
        self._stages = stages
        self._here = here
        before = names[-1] if names else "read"
        self._entry = pq.ParquetFile(run.store.path(attributes(before, shard)))
        self._tokens = pq.ParquetFile(run.store.path(accounts(before, shard)))
        self._old = _older(run, step, shard)
        self._base = pq.ParquetFile(run.store.path(attributes("base", shard)))
        self.texts = ShardTexts(run, shard, names)
        self.flow = Flow()

    def _languages(self, group: int, rows: int) -> Languages:
        """Language of each row as the base pass measured it; empty where it did not."""
        if "language.language" not in self._base.schema_arrow.names:
            return Languages([""], np.zeros(rows, np.int64))
        column = self._base.read_row_group(group, columns=["language.language"]).column(0)
        coded = column.fill_null("").combine_chunks().dictionary_encode()
        return Languages(coded.dictionary.to_pylist(), coded.indices.to_numpy())

    def group(self, group: int) -> list[pa.Array]:
        """Columns of one row group of the account."""
        entry = self._entry.read_row_group(group, columns=["id", "bytes"])
        account = self._tokens.read_row_group(group, columns=["tokens", "edits"])
        rows = entry.num_rows
        language = self._languages(group, rows)
        alive = entry.column("bytes").is_valid().to_numpy()
        size = entry.column("bytes").fill_null(0).to_numpy().astype(np.int64)
        tokens = account.column("tokens").fill_null(0).to_numpy().astype(np.int64)
        seal = account.column("edits").to_numpy().copy()
        named = [f"{s['name']}.code" for s in self._stages]
        named += [f"{s['name']}.edits" for s in self._stages if s["edit_reasons"] is not None]
        here = self._here.read_row_group(group, columns=named)
        extra: list[pa.Array] = []
        pending: list[Edits] = []
        for stage in self._stages:
            name = stage["name"]
            self.flow.book_rows(name, language, alive, "in", "", size, tokens)
            if stage["edit_reasons"] is not None:
                edits = edits_from(here.column(f"{name}.edits").combine_chunks(), stage)
                _seal(seal, edits)
                deltas = self._deltas(group, stage, edits, pending, seal)
                self._book_edits(stage, language, edits, deltas, rows)
                np.add.at(size, edits.rows, edits.inserted() - edits.lengths)
                tokens += deltas.sum(axis=1)
                pending.append(edits)
                touched = np.bincount(edits.rows, minlength=rows) > 0
                extra.append(pa.array(np.where(touched, seal, 0).astype(np.uint64)))
                by_reason = [
                    d if t else None for d, t in zip(deltas.tolist(), touched, strict=True)
                ]
                extra.append(pa.array(by_reason, pa.list_(pa.int64())))
            code = here.column(f"{name}.code").fill_null(0).to_numpy()
            for k, reason in enumerate(stage["reasons"]):
                which = alive & (code == k)
                account_name = "dropped" if k else "kept"
                self.flow.book_rows(
                    name, language, which, account_name, reason if k else "", size, tokens
                )
            alive = alive & (code == 0)
        seal[~alive] = 0
        kept = pa.array(tokens, pa.int64(), mask=~alive)
        return [entry.column("id").combine_chunks(), kept, pa.array(seal), *extra]

    def _deltas(
        self,
        group: int,
        stage: dict[str, Any],
        edits: Edits,
        pending: list[Edits],
        seal: np.ndarray,
    ) -> np.ndarray:
        """Change of tokens by row and reason, int64[rows, reasons]."""
        rows, reasons = len(seal), len(stage["edit_reasons"])
        deltas = np.zeros((rows, reasons), np.int64)
        need = np.unique(edits.rows)
        need = self._reuse(group, stage["name"], need, seal, deltas)
        if not len(need):
            return deltas
        text = self.texts.group(group)
        for earlier in pending:
            text = apply_edits(text, earlier)
        wanted = pick(edits, np.isin(edits.rows, need))
        deltas += token_deltas(self._run.encoder, text, wanted)
        return deltas

    def _reuse(
        self, group: int, stage: str, need: np.ndarray, seal: np.ndarray, deltas: np.ndarray
    ) -> np.ndarray:
        """Fill deltas from an older account with the same edits; returns rows still to count."""
        if self._old is None or f"{stage}.edits" not in self._old.schema_arrow.names:
            return need
        table = self._old.read_row_group(group, columns=[f"{stage}.edits", f"{stage}.deltas"])
        same = table.column(0).to_numpy()[need] == seal[need]
        held = table.column(1).take(pa.array(need[same])).to_pylist()
        if any(h is None or len(h) != deltas.shape[1] for h in held):
            return need
        if held:
            deltas[need[same]] = held
        return need[~same]

    def _book_edits(
        self,
        stage: dict[str, Any],
        language: Languages,
        edits: Edits,
        deltas: np.ndarray,
        rows: int,
    ) -> None:
        inserted = edits.inserted()
        for k, reason in enumerate(stage["edit_reasons"]):
            mine = edits.reasons == k
            cut = np.bincount(edits.rows[mine], edits.lengths[mine], rows).astype(np.int64)
            put = np.bincount(edits.rows[mine], inserted[mine], rows).astype(np.int64)
            fewer, more = np.maximum(-deltas[:, k], 0), np.maximum(deltas[:, k], 0)
            name = stage["name"]
            self.flow.book_rows(
                name, language, (cut > 0) | (fewer > 0), "stripped", reason, cut, fewer
            )
            self.flow.book_rows(name, language, (put > 0) | (more > 0), "added", reason, put, more)


def _seal(seal: np.ndarray, edits: Edits) -> None:
    """Fold each edited row's edits into its digest, so that equal digests mean equal texts."""
    if not len(edits.rows):
        return
    kind = np.zeros(len(edits.rows), np.uint8) if edits.replacement is None else edits.replacement
    marks = [hashlib.blake2b(r, digest_size=8).digest() for r in edits.replacements]
    fills = [int.from_bytes(m, "little", signed=True) for m in marks]
    table = np.stack(
        [edits.starts, edits.lengths, edits.reasons.astype(np.int64), np.array(fills)[kind]], axis=1
    ).astype("<i8")
    rows, first = np.unique(edits.rows, return_index=True)
    bounds = [*first.tolist(), len(edits.rows)]
    for i, row in enumerate(rows.tolist()):
        hasher = hashlib.blake2b(int(seal[row]).to_bytes(8, "little"), digest_size=8)
        hasher.update(table[bounds[i] : bounds[i + 1]].tobytes())
        seal[row] = int.from_bytes(hasher.digest(), "little")


def _older(run: Run, step: PassAccountStep, shard: str) -> pq.ParquetFile | None:
    """The account as it stands, if of the same documents under the same tokenizer."""
    (name,) = step.outputs(run, shard)
    side = run.store.present(name)
    documents = f"documents/{shard}.parquet"
    if side is None or side.fingerprint != step.fingerprint(run, shard):
        return None
    if side.inputs.get(documents) != run.store.require(documents).digest:
        return None
    try:
        run.store.check_bytes(name)
        return pq.ParquetFile(run.store.path(name))
    except (OSError, pa.ArrowException, DamagedError):
        return None
