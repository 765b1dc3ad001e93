"""A plan's sequences written out, in the plan's order, in the formats of other trainers.

`megatron` (.bin + .idx), `ds` (datatrove, nanotron), `npy` (OLMo-core), `mds` (mosaicml-streaming)
and `parquet`: a folder per stage and sequence length. What is written is what the
feed gives: every epoch, with padding. Most readers shuffle again and none of them resumes by
position: the order holds where a trainer reads sequentially, and `TokenFeed` gives it without a
copy.
"""

from __future__ import annotations

from .export import FORMATS, export

__all__ = ["FORMATS", "export"]
