"""fastText classifiers over Arrow columns: read, collapsed to one row a feature, asked together.

    from gristmill.filters.fasttext import bank, load
    model = load("head.ftz")
    model.labels                         # ("high", "low")
    model.probabilities(batch["text"])   # float32[rows, labels]
    bank([model, other]).probabilities(batch["text"])   # one pass over the text for both

No part of the fastText library is needed; tests compare with it.
"""

from __future__ import annotations

from .model import Bank, Model, bank, load

__all__ = ["Bank", "Model", "bank", "load"]
