"""The last steps: the final documents, their tokens, and the plan."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..documents.errors import GristmillError
from ..documents.fingerprint import canonical, digest
from ..documents.schema import TURNS
from ..mixing.spec import MixSpec
from .catalog import catalog, files_of, wanted
from .columns import schema_meta
from .passes import attributes
from .steps import Counts, Facts, Step, combined
from .texts import NARROW, ShardTexts

if TYPE_CHECKING:
    from ..mixing.spoken import Spoken
    from .run import Run

PLANS = 2  # format of what stands beside a plan
CUBE = "cube.parquet"  # beside a plan: `mixing.account` by all dimensions
FORMAT = 2
REVISION = 2  # of the final documents; 2: turns that cuts emptied are closed
CORPUS = pa.schema(
    [
        pa.field("id", pa.binary(16), nullable=False),
        pa.field("text", pa.large_string(), nullable=False),
        *(pa.field(n, pa.string()) for n in NARROW if n != "id"),
        pa.field("row", pa.uint32(), nullable=False),  # in documents/<shard>.parquet
        pa.field("language", pa.string()),
        pa.field("cluster_size", pa.uint32(), nullable=False),  # near duplicates it stands for
        pa.field("turns", TURNS),  # where they stand after all edits
    ],
    metadata={b"gristmill": canonical({"format": FORMAT})},
)
#: Global stages whose clusters are copies of one document; a host or a template has a size too.
COPIES = frozenset({"exact_duplicates", "url_duplicates", "near_duplicates"})


class CorpusStep(Step):
    """`corpus/<shard>.parquet`: what is left, with all edits made, written once."""

    name = "corpus"

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The final documents of a shard."""
        return (f"corpus/{key}.parquet",)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """Documents and the attributes of all passes."""
        passes = [attributes(p.name, key) for p in run.passes]
        return run.store.digests(f"documents/{key}.parquet", *passes)

    def fingerprint(self, run: Run, key: str) -> str:
        """The library that writes Parquet."""
        return digest([FORMAT, REVISION, run.versions("pyarrow")])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Copy the rows that are left, group by group."""
        (name,) = self.outputs(run, key)
        texts = ShardTexts(run, key, [p.name for p in run.passes])
        last = pq.ParquetFile(run.store.path(attributes(run.passes[-1].name, key)))
        extra = _Extra(run, key)
        starts = texts.starts()
        documents = size = 0
        with pq.ParquetWriter(paths[name], CORPUS, compression="zstd") as writer:
            for group in range(texts.groups):
                left = last.read_row_group(group, columns=["bytes"]).column(0).is_valid().to_numpy()
                rows = np.flatnonzero(left)
                if len(rows):
                    batch = texts.batch(group, rows, [], with_text=True)
                    table = pa.Table.from_batches([batch])
                    table = table.append_column(
                        "row", pa.array((rows + starts[group]).astype(np.uint32))
                    )
                    table = extra.append(table, group, rows)
                    table = table.append_column("turns", texts.turns(group, rows))
                    table = table.select(CORPUS.names).cast(CORPUS)
                    size += _text_bytes(table)
                    documents += len(rows)
                else:
                    table = CORPUS.empty_table()
                writer.write_table(table, row_group_size=max(1, table.num_rows))
        facts.bytes = size
        facts.text_bytes = texts.bytes_read
        return {name: {"documents": documents, "text_bytes": size}}


def _text_bytes(table: pa.Table) -> int:
    return int(pc.sum(pc.binary_length(table.column("text"))).as_py() or 0)


class _Extra:
    """Attributes that go with the final documents."""

    def __init__(self, run: Run, shard: str) -> None:
        self._language: pq.ParquetFile | None = None
        self._size: list[tuple[pq.ParquetFile, str]] = []
        for which in run.passes:
            file = pq.ParquetFile(run.store.path(attributes(which.name, shard)))
            for stage in schema_meta(file.schema_arrow)["stages"]:
                if stage["name"] == "language":
                    self._language = file
                if stage["name"] in COPIES:
                    self._size.append((file, f"{stage['name']}.cluster_size"))

    def append(self, table: pa.Table, group: int, rows: np.ndarray) -> pa.Table:
        """Add `language` and `cluster_size` of the given rows of a group."""
        at = pa.array(rows)
        language: Any = pa.nulls(len(rows), pa.string())
        if self._language is not None:
            column = self._language.read_row_group(group, columns=["language.language"]).column(0)
            language = column.take(at)
        size = np.ones(len(rows), np.int64)
        for file, name in self._size:  # exact copies of a near duplicate: clusters multiply at most
            column = file.read_row_group(group, columns=[name]).column(0).take(at)
            size *= column.fill_null(1).to_numpy().astype(np.int64)
        table = table.append_column("language", language)
        return table.append_column(
            "cluster_size", pa.array(np.minimum(size, 2**32 - 1).astype(np.uint32))
        )


class TokensStep(Step):
    """`tokens/<shard>.{bin,ends.npy,ids.npy,unlearnt.npy,index.json}`: the corpus as token ids."""

    name = "tokens"
    SUFFIXES = (".bin", ".ends.npy", ".ids.npy", ".unlearnt.npy", ".index.json")

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The five files of a token shard."""
        return tuple(f"tokens/{key}{s}" for s in self.SUFFIXES)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """The final documents."""
        return run.store.digests(f"corpus/{key}.parquet")

    def fingerprint(self, run: Run, key: str) -> str:
        """The tokenizer, and how turns are laid out."""
        return digest([FORMAT, run.tokenizer_identity, run.recipe.turns])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Encode the shard."""
        from ..mixing.shards import ShardPaths
        from ..mixing.tokens import encode_shard

        names = self.outputs(run, key)
        account = encode_shard(
            run.store.path(f"corpus/{key}.parquet"),
            run.encoder,
            ShardPaths(
                bin=paths[names[0]],
                ends=paths[names[1]],
                ids=paths[names[2]],
                unlearnt=paths[names[3]],
                index=paths[names[4]],
            ),
            turns=run.recipe.turns,
        )
        facts.bytes = facts.text_bytes = account.bytes
        counts = {
            "documents": account.documents,
            "text_tokens": account.text_tokens,
            "special_tokens": account.special_tokens,
            "unlearnt_tokens": account.unlearnt_tokens,
            "turns": list(account.turns),
            "text_bytes": account.bytes,
        }
        return dict.fromkeys(names, counts)


class MixStep(Step):
    """`plans/<plan id>/...` and `plans/current.json`, which names the plan of this recipe."""

    name = "mix"
    needs_all = True

    def keys(self, run: Run) -> list[str]:
        """One plan, if the recipe states a mixture."""
        return ["plan"] if run.recipe.mixture else []

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """The pointer; the plan's files have sidecars of their own."""
        return ("plans/current.json",)

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """What `inputs_of` the recipe's mixture says."""
        return self.inputs_of(run, MixSpec.parse(run.recipe.mixture or {}))

    @staticmethod
    def inputs_of(run: Run, spec: MixSpec) -> dict[str, str]:
        """All token shards, all final documents, and what a plan asks of their attributes."""
        tokens = [n for s in run.shards for n in TokensStep().outputs(run, s)]
        corpus = [f"corpus/{s}.parquet" for s in run.shards]
        found = {"tokens": combined(run, tokens), "corpus": combined(run, corpus)}
        names = wanted(run, spec)
        asked = [n for s in run.shards for n in files_of(run, s, names)]
        return found | ({"attributes": combined(run, asked)} if asked else {})

    def fingerprint(self, run: Run, key: str) -> str:
        """The mixture as the recipe states it."""
        return plan_fingerprint(run.recipe.mixture)

    def is_done(self, run: Run, key: str) -> bool:
        """The pointer is valid, so is every file of the plan, and this version reads it."""
        from ..mixing.plan import Plan

        if not super().is_done(run, key):
            return False
        try:
            pointer = json.loads(run.store.path("plans/current.json").read_bytes())
            if any(run.store.present(n) is None for n in pointer["files"]):
                return False
            Plan.open(run.store.path(f"plans/{pointer['plan']}"))
        except (ValueError, KeyError, TypeError, GristmillError):
            return False
        return True

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Compile beside the plans, then commit file by file, the pointer last."""
        spec = MixSpec.parse(run.recipe.mixture or {})
        mark = self.fingerprint(run, key)
        plan, files = compile_into(run, spec, self.inputs(run, key), mark, facts.close(self.name))
        paths["plans/current.json"].write_bytes(
            canonical({"format": FORMAT, "plan": plan, "files": files})
        )
        return {"plans/current.json": {"plan": plan}}


def plan_fingerprint(mixture: Any) -> str:
    """What a plan is made by: this code's format, and the mixture as it is stated."""
    return digest([FORMAT, PLANS, mixture])


def compile_into(
    run: Run,
    spec: MixSpec,
    inputs: Mapping[str, str],
    fingerprint: str,
    facts: Mapping[str, Any] | None = None,
) -> tuple[str, list[str]]:
    """Compile a mixture over the run's tokens into `plans/<plan id>/`; the id and its files.

    Beside the plan stands its account by all dimensions, `cube.parquet`.
    """
    from ..mixing.account import DIMENSIONS, account
    from ..mixing.compiler import compile_plan
    from ..mixing.plan import Plan

    digests = {s: run.store.require(f"tokens/{s}.bin").digest for s in run.shards}
    with run.store.scratch("plans/compiling") as folder:
        plan = compile_plan(
            catalog(run, wanted(run, spec)),
            spec,
            tokens_digests=digests,
            tokenizer_digest=run.tokenizer_identity[0],
            out=folder,
            bos=bool(run.recipe.tokenizer_options.get("bos")),
            spoken=_spoken(run),
        )
        cube = account(Plan.open(folder / plan), by=list(DIMENSIONS))
        pq.write_table(cube, folder / plan / CUBE, compression="zstd")
        made = sorted(p for p in (folder / plan).iterdir() if p.is_file())
        files = [f"plans/{plan}/{p.name}" for p in made]
        for source, name in zip(made, files, strict=True):
            run.store.adopt(source, name, inputs=inputs, fingerprint=fingerprint, run=facts)
    return plan, files


def _spoken(run: Run) -> dict[str, Spoken]:
    """What token shards say of conversations, where they hold any."""
    from ..mixing.shards import TokenShard
    from ..mixing.spoken import spoken_in

    return {
        shard: spoken_in(TokenShard.open(run.store.path(f"tokens/{shard}.bin").with_suffix("")))
        for shard in run.shards
        if run.store.require(f"tokens/{shard}.bin").counts["turns"][0]
    }
