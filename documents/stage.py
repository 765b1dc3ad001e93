"""One idea: a stage looks at a batch and annotates it; documents never change.

A filter's author writes a frozen keyword-only dataclass with two short methods:

    measure(batch)   looks at text; returns scores (one value per row), edits and evidence
    verdict(scores)  from scores alone; uint8 codes, 0 keeps, k drops for `reasons[k]`

so that a changed threshold needs no text. Each has a fingerprint of its own: fields named in
`verdict_fields` only steer the verdict; all others bear on what is measured.
A stage that reads files (`documents.files`) has a `load()` as well: it reads them, raises
UsageError for a garbled one and returns what there is to say of them, a line each.
`run_stage` enforces the contract and applies the edits for the stages after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from .edits import Edits
from .errors import ContractError


@dataclass(frozen=True, slots=True)
class Evidence:
    """What `why` shows: for some rows a short text (the line, the item, the witness)."""

    rows: np.ndarray  # int64[n], strictly increasing
    notes: list[str]  # n texts


@dataclass(frozen=True, slots=True)
class Measured:
    """What a stage saw. Every score has one entry per row: shape [rows] or [rows, k].

    Dtypes: bool, integers, float32/64 (finite), or `S<n>` for short ASCII names (`eng_Latn`).
    """

    scores: Mapping[str, np.ndarray]
    edits: Edits | None = None
    evidence: Evidence | None = None


@runtime_checkable
class Stage(Protocol):
    """A frozen keyword-only dataclass; its fields are its whole configuration.

    The four properties are class variables of a stage as a rule.
    """

    @property
    def name(self) -> str:
        """As recipes and reports call it."""
        ...

    @property
    def revision(self) -> int:
        """Raised whenever the same fields would measure or judge otherwise."""
        ...

    @property
    def reasons(self) -> tuple[str, ...]:
        """Names of the codes; reasons[0] == "keep"."""
        ...

    @property
    def verdict_fields(self) -> frozenset[str]:
        """Thresholds: the fields that `measure` never reads."""
        ...

    def measure(self, batch: pa.RecordBatch) -> Measured:
        """Look at the text of `batch` (columns: `documents.schema.DOCUMENTS`)."""
        ...

    def verdict(self, scores: Mapping[str, np.ndarray]) -> np.ndarray:
        """Codes uint8[rows] from scores alone; 0 keeps."""
        ...


def checked_measure(stage: Stage, batch: pa.RecordBatch) -> Measured:
    """Measure `batch`; ContractError names the stage and what it broke."""
    measured = stage.measure(batch)
    rows = batch.num_rows
    for name, values in measured.scores.items():
        if len(values) != rows:
            msg = (
                f"{stage.name}: got {rows} rows, score {name!r} has {len(values)} values. "
                "A stage gives one value per row; rows are dropped by code, never left out."
            )
            raise ContractError(msg)
        if values.dtype.kind not in "biufS":
            msg = f"{stage.name}: score {name!r} is {values.dtype}; expected bool, int, float or S"
            raise ContractError(msg)
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values.reshape(rows, -1)).all(axis=1))[0])
            msg = f"{stage.name}: score {name!r} is not finite in row {row}"
            raise ContractError(msg)
    if measured.edits is not None:
        measured.edits.check(batch.column("text"), stage.name)
    if measured.evidence is not None:
        ev = measured.evidence
        if len(ev.rows) != len(ev.notes) or (len(ev.rows) and not 0 <= ev.rows[-1] < rows):
            msg = f"{stage.name}: evidence names {len(ev.rows)} rows with {len(ev.notes)} notes"
            raise ContractError(msg)
    return measured


def checked_verdict(stage: Stage, scores: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
    """Judge by scores; ContractError when a code has no reason or a row no code."""
    codes = np.asarray(stage.verdict(scores))
    if codes.shape != (rows,) or codes.dtype != np.uint8:
        msg = f"{stage.name}: got {rows} rows, returned codes {codes.dtype}{list(codes.shape)}"
        raise ContractError(msg)
    if rows and int(codes.max()) >= len(stage.reasons):
        msg = f"{stage.name}: code {int(codes.max())} has no reason; reasons are {stage.reasons}"
        raise ContractError(msg)
    return codes
