"""Render formulas as MathML while the pages are built, so that browsers need neither a script nor a network."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

logger = logging.getLogger(__name__)
# Symbols that latex2mathml writes as identifiers: as operators they get their spacing.
OPERATORS = re.compile(
    r"<mi>(&#x(?:02AB0|02AAF|02192|02190|027E8|027E9|02225|02A7E|02A7D|0226A|0226B);)</mi>"
)


# Brackets and norm bars keep the size of a letter.
BRACKETS = re.compile(r"<mo>(&#x(?:027E8|027E9|02016|0007C);)</mo>")


def mathml(latex: str, display: str) -> str:
    """Return the MathML element of a formula; warn about commands that are not known."""
    made = OPERATORS.sub(r"<mo>\1</mo>", convert(latex, display=display))
    made = BRACKETS.sub(r'<mo stretchy="false">\1</mo>', made)
    if unknown := re.search(r"\\[A-Za-z]+|<mi>&</mi>", made):
        logger.warning(
            "the formula %r has %r, which cannot be shown",
            latex,
            unknown.group(),
        )
    return made


def visit_inline(self, node):
    """Write a formula that is part of a sentence."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(self, node):
    """Write a formula on lines of its own."""
    self.body.append(
        f'<div class="formula">{mathml(node.astext(), "block")}</div>\n'
    )
    raise nodes.SkipNode


def setup(app):
    """Register the renderer `mathml`, for `html_math_renderer`."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(visit_inline, None),
        block_renderers=(visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
