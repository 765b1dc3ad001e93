"""The life of a classifier: annotate, train, calibrate, evaluate, quantize, card.

Nothing here runs in a pipeline; `filters.quality` reads what it makes. Needs the `quality` extra
(scikit-learn, scipy, requests).
"""
