"""What a step is: for each key (a shard, a partition) some outputs, made from inputs.

The driver asks `is_done` and hands the keys that are not to an executor; a worker calls `make`.
Nobody else decides what is done. A step's `write` fills temporary paths; `make` commits them.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..documents.errors import StopError
from ..documents.fingerprint import canonical, digest
from .exchange import digests_by_partition
from .worker import peak_bytes

if TYPE_CHECKING:
    from .run import Run
    from .store import Sidecar

MANIFEST = 2  # format of manifests
Counts = dict[str, dict[str, Any]]  # output name -> counts for its sidecar


class Step:
    """Base of all steps; subclasses give keys, outputs, inputs, a fingerprint and `write`."""

    name: str
    needs_all = False  # whether it must stop when a shard before it failed
    local = False  # whether the driver does it itself: too little work to hand out

    def keys(self, run: Run) -> list[str]:
        """What there is to make; the shards unless a step says otherwise."""
        return list(run.shards)

    def outputs(self, run: Run, key: str) -> tuple[str, ...]:
        """File names relative to the run."""
        raise NotImplementedError

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """Digests of what the outputs are made from; StopError when a piece is missing."""
        raise NotImplementedError

    def fingerprint(self, run: Run, key: str) -> str:
        """Digest of the configuration and library versions that bear on the outputs."""
        raise NotImplementedError

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """Write each output to its temporary path; return counts by output name."""
        raise NotImplementedError

    def is_done(self, run: Run, key: str) -> bool:
        """Whether all outputs of `key` are valid."""
        inputs, fingerprint = self.inputs(run, key), self.fingerprint(run, key)
        return all(run.store.valid(o, inputs, fingerprint) for o in self.outputs(run, key))

    def make(self, run: Run, key: str) -> None:
        """Make the outputs of `key` and commit them."""
        inputs, fingerprint = self.inputs(run, key), self.fingerprint(run, key)
        facts = Facts()
        with ExitStack() as stack:
            names = self.outputs(run, key)
            paths = {o: stack.enter_context(run.store.writing(o)) for o in names}
            counts = self.write(run, key, paths, facts)
            for name in names:
                run.store.commit(
                    paths[name],
                    name,
                    inputs=inputs,
                    fingerprint=fingerprint,
                    counts=counts.get(name),
                    run=facts.close(self.name),
                )


class Facts:
    """Timings of one task: never in a fingerprint, shown by `status` and the report."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._cpu = time.process_time()
        self.text_bytes = 0  # text read from documents
        self.bytes = 0  # what the step worked on: text, or stored bytes for a reader
        self.stages: dict[str, list[float]] = {}  # name -> [seconds, bytes]

    def book(self, stage: str, seconds: float, size: int) -> None:
        """Add the time that one stage took over `size` bytes."""
        entry = self.stages.setdefault(stage, [0.0, 0])
        entry[0] += seconds
        entry[1] += size

    def close(self, step: str) -> dict[str, Any]:
        """Facts for `<f>.run.json`."""
        return {
            "step": step,
            "seconds": round(time.perf_counter() - self._start, 6),
            "cpu_seconds": round(time.process_time() - self._cpu, 6),
            "bytes": self.bytes,
            "text_bytes_read": self.text_bytes,
            "stages": {k: [round(s, 6), int(b)] for k, (s, b) in self.stages.items()},
            "peak_rss_bytes": peak_bytes(),
            "host": platform.node(),
            "pid": os.getpid(),
        }


class ManifestStep(Step):
    """`manifests/<step>.json`: all outputs of a finished step, by digest and documents.

    What needs all of a step names this one file among its inputs: a sidecar with 100,000 names
    helps nobody, and a task that looked at every one of them would cost more than its work. What
    needs one partition of them names that (`piece`): it is valid for as long as the rows in it are.
    """

    needs_all = True
    local = True

    def __init__(self, of: Step) -> None:
        self.of = of
        self.name = f"manifest-{of.name}"

    def keys(self, run: Run) -> list[str]:
        """One."""
        return ["all"]

    def outputs(self, run: Run, key: str = "all") -> tuple[str, ...]:
        """One small file."""
        return (f"manifests/{self.of.name}.json",)

    def _sides(self, run: Run) -> dict[str, Sidecar]:
        names = [o for key in self.of.keys(run) for o in self.of.outputs(run, key)]
        return {n: run.store.require(n) for n in names}

    def inputs(self, run: Run, key: str) -> dict[str, str]:
        """All outputs, under one digest."""
        return {self.of.name: digest(_files(self._sides(run)))}

    def fingerprint(self, run: Run, key: str) -> str:
        """The format alone."""
        return digest(["manifest", MANIFEST])

    def write(self, run: Run, key: str, paths: Mapping[str, Path], facts: Facts) -> Counts:
        """List them."""
        (name,) = self.outputs(run)
        sides = self._sides(run)
        pieces = ((n, side.counts.get("pieces", "")) for n, side in sides.items())
        body = {
            "format": MANIFEST,
            "files": _files(sides),
            "partitions": digests_by_partition(pieces),
        }
        paths[name].write_bytes(canonical(body))
        return {name: {"files": len(sides)}}

    def files(self, run: Run) -> dict[str, list[Any]]:
        """[digest, documents] of each output, as listed."""
        found: dict[str, list[Any]] = self._listed(run)["files"]  # of the cache, as it is
        return found

    def piece(self, run: Run, partition: int) -> dict[str, str]:
        """The digest of all rows of one partition, for the `inputs` of what is made from them."""
        (name,) = self.outputs(run)
        return {f"{name}#{partition}": self._listed(run)["partitions"][partition]}

    def _listed(self, run: Run) -> dict[str, Any]:
        (name,) = self.outputs(run)
        found = _read(run.store.path(name), run.store.require(name).digest)
        if found["format"] != MANIFEST:
            msg = f"{name}: format {found['format']}, this reads {MANIFEST}; give the same `run` "
            msg += "command again"
            raise StopError(msg)
        return found


def _files(sides: Mapping[str, Sidecar]) -> dict[str, list[Any]]:
    return {n: [s.digest, s.counts.get("documents")] for n, s in sides.items()}


@lru_cache(maxsize=64)
def _read(path: Path, _digest: str) -> dict[str, Any]:
    return dict(json.loads(path.read_bytes()))


def combined(run: Run, names: list[str]) -> str:
    """One digest over the digests of many files, for steps that take whole folders."""
    return digest({name: run.store.require(name).digest for name in names})
