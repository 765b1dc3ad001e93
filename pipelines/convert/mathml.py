r"""Formulas to TeX, before a page is read as text.

Pages carry a formula as MathML, as TeX for a script (`<script type="math/tex">`), as a picture with
TeX for its `alt`, and often as two of them beside a drawing made of spans, which read as text gives
each formula twice and wrong. Where TeX is stated (an `annotation`, `alttext`, the script) it is
taken; else MathML's presentation elements are converted, which covers what editors write; elements
without a rule give their children. The result stands as text: `$...$`, or `$$...$$` for a display.

Steps are counted (`MAX_NODES` nodes a page, `MAX_DEPTH` deep): beyond, the formula's bare text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

MAX_NODES: Final = 50_000
MAX_DEPTH: Final = 40

_DRAWINGS: Final = ".MathJax, .MathJax_Display, .MathJax_Preview, .MathJax_SVG, .katex-html"
_IMAGES: Final = "img.latex, img.tex, img.wp-katex-eq, img.mwe-math-fallback-image-inline"

_SYMBOLS: Final = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\epsilon",
    "ϵ": r"\epsilon", "ζ": r"\zeta", "η": r"\eta", "θ": r"\theta", "ι": r"\iota", "κ": r"\kappa",
    "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "π": r"\pi", "ρ": r"\rho",
    "σ": r"\sigma", "τ": r"\tau", "υ": r"\upsilon", "φ": r"\phi", "ϕ": r"\phi", "χ": r"\chi",
    "ψ": r"\psi", "ω": r"\omega", "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta",
    "Λ": r"\Lambda", "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma", "Φ": r"\Phi", "Ψ": r"\Psi",
    "Ω": r"\Omega", "∑": r"\sum", "∏": r"\prod", "∫": r"\int", "∮": r"\oint", "∂": r"\partial",
    "∇": r"\nabla", "∞": r"\infty", "±": r"\pm", "∓": r"\mp", "×": r"\times", "÷": r"\div",
    "·": r"\cdot", "⋅": r"\cdot", "∘": r"\circ", "∗": "*", "−": "-", "≤": r"\le", "≥": r"\ge",
    "≠": r"\ne", "≈": r"\approx", "≡": r"\equiv", "∼": r"\sim", "≃": r"\simeq", "∝": r"\propto",
    "∈": r"\in", "∉": r"\notin", "⊂": r"\subset", "⊆": r"\subseteq", "∪": r"\cup", "∩": r"\cap",
    "∅": r"\emptyset", "∀": r"\forall", "∃": r"\exists", "¬": r"\neg", "∧": r"\land",
    "∨": r"\lor", "→": r"\to", "←": r"\leftarrow", "⇒": r"\Rightarrow", "⇔": r"\Leftrightarrow",
    "↔": r"\leftrightarrow", "↦": r"\mapsto", "…": r"\dots", "⋯": r"\cdots", "⋮": r"\vdots",
    "⟨": r"\langle", "⟩": r"\rangle", "‖": r"\|", "{": r"\{", "}": r"\}", "ℝ": r"\mathbb{R}",
    "ℕ": r"\mathbb{N}", "ℤ": r"\mathbb{Z}", "ℂ": r"\mathbb{C}", "ℚ": r"\mathbb{Q}", "ℓ": r"\ell",
    "′": "'", "%": r"\%", "&": r"\&", "#": r"\#", "_": r"\_", "\u2061": "", "\u2062": "",
    "\u2063": "", "\u2064": "", "\u200b": "", "\xa0": " ",
}  # fmt: skip
_ACCENTS: Final = {
    "^": "hat", "ˆ": "hat", "~": "tilde", "˜": "tilde", "¯": "bar", "‾": "overline", "→": "vec",
    "⃗": "vec", "˙": "dot", ".": "dot", "¨": "ddot", "⏞": "overbrace",
}  # fmt: skip
_FUNCTIONS: Final = frozenset({
    "sin", "cos", "tan", "cot", "sec", "csc", "arcsin", "arccos", "arctan", "sinh", "cosh", "tanh",
    "log", "ln", "exp", "lim", "max", "min", "sup", "inf", "det", "dim", "ker", "gcd", "arg", "deg",
    "Pr",
})  # fmt: skip


def write_formulas(tree: Any) -> int:
    """Replace the formulas of a tree by text nodes of TeX; how many."""
    body = tree.body
    if body is None:
        return 0
    steps = [MAX_NODES]
    found = 0
    for script in body.query_selector_all('script[type^="math/tex"]'):
        found += _replace(tree, script, script.text, display="display" in (script["type"] or ""))
    if found:
        for drawing in body.query_selector_all(_DRAWINGS):
            _remove(drawing)
    for math in body.query_selector_all("math"):
        tex = _stated(math) or _convert(math, steps, 0)
        display = math.getattr("display") == "block"
        found += _replace(tree, _outermost(math), tex, display=display)
    for drawing in body.query_selector_all(".katex-html"):
        _remove(drawing)
    for image in body.query_selector_all(_IMAGES):
        if alt := image.getattr("alt"):
            found += _replace(tree, image, alt, display=False)
    return found


def _replace(tree: Any, node: Any, tex: str, *, display: bool) -> int:
    tex = " ".join((tex or "").split())
    tex = re.sub(r"^\{\\(?:display|text)style (.*)\}$", r"\1", tex).strip()
    if not tex or node.parent is None:
        return 0
    mark = "" if tex.startswith("$") else "$$" if display else "$"
    node.parent.replace_child(tree.create_text_node(f"{mark}{tex}{mark}"), node)
    return 1


def _remove(node: Any) -> None:
    if node.parent is not None:
        node.parent.remove_child(node)


def _outermost(math: Any) -> Any:
    """The wrapper that holds one formula and its drawings."""
    node, parent = math, math.parent
    for _ in range(4):
        if parent is None or parent.tag not in {"span", "mjx-container", "mjx-assistive-mml"}:
            break
        name = parent.getattr("class") or ""
        if parent.tag != "span" or "math-element" in name or "katex" in name or "MathJax" in name:
            node = parent
        elif "mathml" not in name:
            break
        parent = parent.parent
    return node


def _stated(math: Any) -> str:
    for note in math.query_selector_all("annotation"):
        if "tex" in (note.getattr("encoding") or "").lower() and note.text.strip():
            return str(note.text)
    return math.getattr("alttext") or ""


def _children(node: Any) -> list[Any]:
    found = []
    child = node.first_child
    while child is not None:
        if child.type == 1:  # an element
            found.append(child)
        child = child.next
    return found


def _leaf(text: str, tag: str) -> str:
    text = " ".join(text.split())
    if tag in {"mtext", "ms"}:
        return rf"\text{{{text}}}" if text else ""
    if text in _FUNCTIONS:
        return rf"\{text} "
    out = "".join(_SYMBOLS.get(c, c) for c in text)
    if out.startswith("\\") and out[-1].isalpha():
        return out + " "
    return rf"\mathrm{{{out}}}" if tag == "mi" and len(text) > 1 and text.isalpha() else out


def _group(tex: str) -> str:
    return f"{{{tex.strip()}}}"


def _convert(node: Any, steps: list[int], depth: int) -> str:
    steps[0] -= 1
    tag = node.tag.lower()
    if steps[0] < 0 or depth > MAX_DEPTH:
        return " ".join(node.text.split())
    if tag in {"mi", "mn", "mo", "mtext", "ms"}:
        return _leaf(node.text, tag)
    if tag in {"annotation", "annotation-xml", "mphantom"}:
        return ""
    if tag == "mspace":
        return " "
    parts = [_convert(child, steps, depth + 1) for child in _children(node)]
    rule = _RULES.get(tag)
    if rule is not None and len(parts) >= rule[0]:
        return rule[1](parts)
    if tag in {"mtable", "mtr", "mlabeledtr"}:
        if tag == "mtable":
            return r"\begin{matrix}" + r" \\ ".join(p.strip() for p in parts) + r"\end{matrix}"
        return " & ".join(p.strip() for p in parts)
    if tag == "mfenced":
        left, right = node.getattr("open") or "(", node.getattr("close") or ")"
        return f"{left}{','.join(p.strip() for p in parts)}{right}"
    return "".join(parts)


def _over(parts: list[str]) -> str:
    accent = parts[1].strip()
    plain = next((k for k, v in _SYMBOLS.items() if v == accent), accent)
    if plain in _ACCENTS:
        return rf"\{_ACCENTS[plain]}{_group(parts[0])}"
    if parts[0].strip() in {r"\sum", r"\prod", r"\int", r"\lim"}:
        return f"{parts[0].strip()}^{_group(parts[1])}"
    return rf"\overset{_group(parts[1])}{_group(parts[0])}"


def _under(parts: list[str]) -> str:
    base = parts[0].strip()
    if base.lstrip("\\") in _FUNCTIONS or base in {r"\sum", r"\prod", r"\int"}:
        return f"{base}_{_group(parts[1])}"
    return rf"\underset{_group(parts[1])}{_group(parts[0])}"


_RULES: Final[dict[str, tuple[int, Callable[[list[str]], str]]]] = {
    "mfrac": (2, lambda p: rf"\frac{_group(p[0])}{_group(p[1])}"),
    "msqrt": (0, lambda p: rf"\sqrt{_group(''.join(p))}"),
    "mroot": (2, lambda p: rf"\sqrt[{p[1].strip()}]{_group(p[0])}"),
    "msup": (2, lambda p: f"{p[0].strip()}^{_group(p[1])}"),
    "msub": (2, lambda p: f"{p[0].strip()}_{_group(p[1])}"),
    "msubsup": (3, lambda p: f"{p[0].strip()}_{_group(p[1])}^{_group(p[2])}"),
    "munderover": (3, lambda p: f"{p[0].strip()}_{_group(p[1])}^{_group(p[2])}"),
    "mover": (2, _over),
    "munder": (2, _under),
}
