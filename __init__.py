"""gristmill: raw web shards in; a deduplicated, accounted, staged training mixture out."""

from __future__ import annotations

__version__ = "0.1.0"
