"""What an amended plan leaves out, counted by window: for the accounts."""

from __future__ import annotations

import numpy as np

from .plan import Plan
from .usage import Usage


class LeftOut:
    """Skipped windows and masked reads before `end`; all zeros where nothing was amended.

    Memory: 48 bytes a sequence from the first mask on.
    """

    def __init__(self, plan: Plan, end: int) -> None:
        self.plan = plan
        parts = [plan.rows(min(low, end), min(high, end)) for low, high in plan.skips]
        self._skipped = np.concatenate([np.zeros((0, 6), np.int64), *parts])
        first = int(plan.masks[:, 1].min()) if len(plan.masks) else end
        self._rows = plan.rows(min(first, end), end)
        gone = np.isin(self._rows[:, 0], self._skipped[:, 0])
        self._rows = self._rows[~gone]

    def windows(self, stage: int, lane: int) -> int:
        """How many sequences of the lane are skipped in a stage."""
        return int(self._of(self._skipped, stage, lane).size)

    def skipped(self, stage: int, lane: int) -> np.ndarray:
        """How often each window of the lane would have been read there: int64[windows]."""
        windows = self._of(self._skipped, stage, lane)
        return np.bincount(windows, minlength=self.plan.lanes[lane].windows).astype(np.int64)

    def hidden(self, usage: Usage, stage: int, lane: int) -> np.ndarray:
        """How often each segment of the lane is masked in the stage: int64, as `usage.spread`."""
        mine = usage.segments[lane]
        out = np.zeros(len(mine), dtype=np.int64)
        document = usage.document[mine]
        for first in np.unique(self.plan.masks[:, 1]).tolist():
            rows = self._rows[self._rows[:, 0] >= first]
            read = np.bincount(self._of(rows, stage, lane), minlength=self.plan.lanes[lane].windows)
            masked = self.plan.masks[self.plan.masks[:, 1] == first, 0]
            out += usage.spread(lane, read.astype(np.int64)) * np.isin(document, masked)
        return out

    @staticmethod
    def _of(rows: np.ndarray, stage: int, lane: int) -> np.ndarray:
        """Windows in the rows of a stage and lane (columns of `Plan.rows`)."""
        return rows[(rows[:, 1] == stage) & (rows[:, 3] == lane), 5]
