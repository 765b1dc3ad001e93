"""Static SVG and HTML tables, written by hand: 2 kB a chart, where plotting libraries take 17-900.

Every text is escaped here and nowhere else. Colours are CSS variables of the page, so that one
picture serves light and dark.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from .display import UNKNOWN, cell

ROW, TOP, LABEL = 26, 30, 178  # height of a row, of the head; width of the labels; all in px
PANEL, BAR = 268, 150  # width of a panel with its numbers, of its longest bar


def escape(value: Any) -> str:
    """Text that is safe in HTML and in attributes."""
    return html.escape(str(value), quote=True)


def short(value: float | None) -> str:
    """Three or four digits and a letter: 812, 9.31 k, 1.20 M."""
    if value is None:
        return UNKNOWN
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{value / scale:#.3g}".rstrip(".") + f" {unit}"
    return f"{value:,.0f}"


def share(part: float | None, whole: float | None, digits: int = 1) -> str:
    """A percentage; unknown or of nought is said so."""
    if part is None or whole is None:
        return UNKNOWN
    return f"{part / whole:.{digits}%}" if whole else "-"


def number(value: Any) -> str:
    """One table cell: None is `unknown`, never 0."""
    if value is None:
        return f'<span class="unknown">{UNKNOWN}</span>'
    return escape(cell(value))


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, empty: str = "none") -> str:
    """An HTML table; numbers stand to the right."""
    if not rows:
        return f'<p class="quiet">{escape(empty)}</p>'
    numeric = [
        all(r[i] is None or isinstance(r[i], (int, float)) or _percent(r[i]) for r in rows)
        for i in range(len(columns))
    ]
    kinds = [' class="n"' if n else "" for n in numeric]
    head = "".join(f"<th{k}>{escape(c)}</th>" for c, k in zip(columns, kinds, strict=True))
    body = "\n".join(
        "<tr>"
        + "".join(f"<td{k}>{number(v)}</td>" for v, k in zip(r, kinds, strict=True))
        + "</tr>"
        for r in rows
    )
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
    return f'<div class="scroll">{whole}</div>'


def without_noughts(
    columns: Sequence[str], rows: Sequence[Sequence[Any]]
) -> tuple[list[str], list[list[Any]]]:
    """The table without columns that hold nothing but nought."""
    some = [i for i in range(len(columns)) if any(row[i] != 0 for row in rows)]
    return [columns[i] for i in some], [[row[i] for i in some] for row in rows]


def _percent(value: Any) -> bool:
    return isinstance(value, str) and (value.endswith("%") or value in {"-", ""})


def funnel(rows: Sequence[tuple[str, Sequence[int | None]]], units: Sequence[str]) -> str:
    """One row per stage, one panel per unit; pale is what came in, full what is left.

    rows: (label, one amount per unit); the first row is the whole.
    """
    width, height = LABEL + PANEL * len(units), TOP + ROW * len(rows) + 6
    about = 'role="img" aria-label="what is left after each stage"'
    parts = [f'<svg viewBox="0 0 {width} {height}" {about}>']
    for p, unit in enumerate(units):
        parts.append(f'<text class="head" x="{LABEL + p * PANEL}" y="16">{escape(unit)}</text>')
    for i, (label, amounts) in enumerate(rows):
        y = TOP + ROW * i
        parts.append(f'<text class="label" x="0" y="{y + 15}">{escape(_clip(label))}</text>')
        for p, amount in enumerate(amounts):
            whole, before = rows[0][1][p], rows[max(0, i - 1)][1][p]
            x = LABEL + p * PANEL
            title = f"{label}: {number(amount)} {units[p]}"
            if whole and amount is not None and before is not None:
                old, new = BAR * before / whole, BAR * amount / whole
                parts.append(
                    f'<rect class="was" x="{x}" y="{y + 2}" width="{old:.1f}" height="17"/>'
                )
                new = max(new, 0.5)  # what is left stays visible
                parts.append(
                    f'<rect class="bar" x="{x}" y="{y + 2}" width="{new:.1f}" height="17">'
                    f"<title>{escape(title)}</title></rect>"
                )
            parts.append(
                f'<text class="value" x="{x + BAR + 8}" y="{y + 15}">{escape(short(amount))}'
                f'<tspan class="part" dx="6">{escape(share(amount, whole))}</tspan></text>'
            )
    return "".join([*parts, "</svg>"])


def bars(rows: Sequence[tuple[str, int]], about: str) -> str:
    """Plain horizontal bars with their numbers; `about` is read out in place of the picture."""
    most = max((v for _, v in rows), default=0)
    height = ROW * len(rows) + 4
    spoken = f'role="img" aria-label="{escape(about)}"'
    parts = [f'<svg style="max-width: 720px" viewBox="0 0 720 {height}" {spoken}>']
    for i, (label, value) in enumerate(rows):
        y = ROW * i
        size = 380 * value / most if most else 0
        parts.append(
            f'<text class="label" x="0" y="{y + 15}">{escape(_clip(label))}</text>'
            f'<rect class="bar" x="{LABEL}" y="{y + 2}" width="{max(size, 0.5):.1f}" height="17"/>'
            f'<text class="value" x="{LABEL + size + 8:.1f}" y="{y + 15}">{value:,}</text>'
        )
    return "".join([*parts, "</svg>"])


def _clip(label: str) -> str:
    return label if len(label) <= 24 else label[:23] + "…"
