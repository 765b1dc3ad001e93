"""Formulas to TeX."""

# ruff: noqa: ISC004

from __future__ import annotations

import pytest
from resiliparse.parse.html import HTMLTree

from gristmill.pipelines.convert.mathml import write_formulas


def text(source):
    tree = HTMLTree.parse(f"<body><p>{source}</p>")
    found = write_formulas(tree)
    return tree.body.text.strip(), found


@pytest.mark.parametrize(
    ("source", "tex"),
    [
        ("<mfrac><mn>1</mn><mi>x</mi></mfrac>", r"\frac{1}{x}"),
        ("<msqrt><mi>x</mi><mo>+</mo><mn>1</mn></msqrt>", r"\sqrt{x+1}"),
        ("<mroot><mi>x</mi><mn>3</mn></mroot>", r"\sqrt[3]{x}"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>", "x_{i}^{2}"),
        (
            "<munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi>"
            "</munderover>",
            r"\sum_{i=1}^{n}",
        ),
        ("<mover><mi>x</mi><mo>^</mo></mover>", r"\hat{x}"),
        ("<mi>sin</mi><mi>θ</mi>", r"\sin \theta"),
        ("<mi>rank</mi><mo>≤</mo><mi>n</mi>", r"\mathrm{rank}\le n"),
        ("<mtext>if  so</mtext>", r"\text{if so}"),
        (
            "<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr>"
            "<mtr><mtd><mn>0</mn></mtd><mtd><mn>1</mn></mtd></mtr></mtable>",
            r"\begin{matrix}1 & 0 \\ 0 & 1\end{matrix}",
        ),
        ("<mfrac><mi>x</mi></mfrac>", "x"),
    ],
)
def test_mathml_becomes_tex(source, tex):
    assert text(f"<math>{source}</math>") == (f"${tex}$", 1)


def test_stated_tex_goes_before_markup():
    source = (
        "<math display=block><semantics><mi>wrong</mi>"
        '<annotation encoding="application/x-tex">{\\displaystyle a^2}</annotation></semantics>'
        "</math>"
    )
    assert text(source) == ("$$a^2$$", 1)
    assert text('<math alttext="b_1"><mi>wrong</mi></math>') == ("$b_1$", 1)


def test_scripts_and_drawings_of_mathjax_and_katex_give_one_formula():
    mathjax = (
        '<span class="MathJax_Preview">pre</span><span class="MathJax"><span>drawn</span></span>'
        '<script type="math/tex; mode=display">x^2</script>'
    )
    assert text(mathjax) == ("$$x^2$$", 1)
    katex = (
        '<span class="katex"><span class="katex-mathml"><math><semantics><mi>y</mi><annotation '
        'encoding="application/x-tex">y_1</annotation></semantics></math></span>'
        '<span class="katex-html" aria-hidden="true">y1</span></span>'
    )
    assert text(f"Let {katex} be.") == ("Let $y_1$ be.", 1)
    wiki = (
        '<span class="mwe-math-element"><span class="mwe-math-mathml-inline" style="display: none">'
        '<math alttext="{\\displaystyle z}"><mi>z</mi></math></span>'
        '<img class="mwe-math-fallback-image-inline" alt="{\\displaystyle z}"></span>'
    )
    assert text(f"So {wiki}.") == ("So $z$.", 1)
    assert text('<img class="latex" alt="\\alpha">') == (r"$\alpha$", 1)


def test_empty_and_deep_formulas_do_no_harm():
    assert text("a <math></math> b")[1] == 0
    deep = "<mrow>" * 5_000 + "<mi>x</mi>" + "</mrow>" * 5_000
    assert text(f"<math>{deep}</math>") == ("$x$", 1)
    many = "<math>" + "<mi>x</mi>" * 200_000 + "</math>"
    assert text(many)[0].count("x") == 200_000
