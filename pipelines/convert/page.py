"""One page to its main text: parse, write back, scan, choose, weed, render.

lexbor (by Resiliparse) repairs the markup as browsers do; the tree is written back as regular HTML
and all else is a few linear passes of kernels over those bytes: no Python per node. On the 326
pages of the benchmark (250 kB each) parsing takes 1.0 ms, writing back 0.8, the kernels 0.6.
Resiliparse's own search and text, which this replaces, take 2.9.

Marks of Markdown are on: a heading, a list, a table or a block of code that is not marked as one
cannot be told from prose afterwards, and models are trained to read and write this form. They cost
2.0% of the characters there; `markdown: false` leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from resiliparse.parse.html import HTMLTree

from .choose._kernels import choose, tally
from .head import is_product, stated
from .mathml import write_formulas
from .render._kernels import render
from .tree import vocabulary as words
from .tree._kernels import data_tables, measure, scan
from .weed._kernels import weed

_MATH: Final = words.TAG["math"]
_HIDDEN: Final = np.int32(1 << words.REASONS.index("hidden"))
MAX_BYTES: Final = 1 << 30  # of the tree written back: offsets are 32 bits


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """The text, what was cut (characters that are not spaces, by reason), what the page states."""

    text: str
    cut: dict[str, int]
    stated: dict[str, str]
    formulas: int


def read_page(html: str, *, markdown: bool = True) -> Page:
    """The main text of a page. Raises what the parser raises; ValueError above MAX_BYTES."""
    tree = HTMLTree.parse(html)
    said = stated(tree, html)
    nodes = read_nodes(tree)
    formulas = 0
    if (nodes.tag == _MATH).any() or (nodes.hints & words.FORMULA).any():
        formulas = write_formulas(tree)
        nodes = read_nodes(tree) if formulas else nodes
    text, cut = main_text(nodes, product=is_product(html), markdown=markdown)
    return Page(text=text, cut=cut, stated=said, formulas=formulas)


class Nodes(NamedTuple):
    """The body of a page, node by node in document order: see `tree._kernels.scan`."""

    buf: np.ndarray
    tag: np.ndarray
    parent: np.ndarray
    last: np.ndarray
    start: np.ndarray
    end: np.ndarray
    hints: np.ndarray


def read_nodes(tree: HTMLTree) -> Nodes:
    """The tree written back and scanned; no nodes where it has no body (framesets)."""
    body = tree.body
    source = body.html.encode("utf-8", "replace") if body is not None else b""
    if len(source) > MAX_BYTES:
        raise ValueError(f"{len(source)} bytes of markup; at most {MAX_BYTES} are read")
    buf = np.frombuffer(source, np.uint8)
    return Nodes(
        buf,
        *scan(
            buf, words.TAG_KEYS, words.TAG_VALUES, words.HINT_KEYS, words.HINT_VALUES,
            words.VOID, words.RAW, _HIDDEN,
        ),
    )  # fmt: skip


def main_text(nodes: Nodes, *, product: bool, markdown: bool) -> tuple[str, dict[str, int]]:
    """The text, and characters cut by reason."""
    buf, tag, parent, last, start, end, hints = nodes
    if not len(tag):
        return "", {}
    chars, marks = measure(buf, tag, parent, start, end, words.NEVER)
    cut, root, kept, prose = choose(
        buf, tag, parent, last, start, end, hints, chars, marks, words.NEVER, product
    )
    weed(
        buf, tag, parent, last, start, end, hints, chars, marks, cut, root, kept, words.BLOCK, prose
    )
    counts = tally(tag, chars, cut)
    if not counts[0] and counts.any():  # everything was cut: keep all that shows
        cut = np.where(words.NEVER[tag] | (cut == 255), cut, 0).astype(np.uint8)
        root = 0
        counts = tally(tag, chars, cut)
    data = data_tables(tag, parent, chars, cut)
    out = render(
        buf, tag, parent, last, start, end, hints, chars, cut, root, words.BLOCK, data, markdown
    )
    found = {name: int(counts[1 + at]) for at, name in enumerate(words.REASONS) if counts[1 + at]}
    return out.tobytes().decode("utf-8", "replace"), found
