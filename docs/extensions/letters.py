"""Letters of the papers as mathematics: pages are written in plain text, κ_a' and M1^-2, and set on the site."""

import re

from docutils import nodes
from sphinx.application import Sphinx

import api_reference
from iclab.report.mathematics import inline

SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
POWER = re.compile(r"(?<=[A-Za-zΑ-ω12])([⁰¹²³⁴-⁹⁻]+)")
DECIMAL = re.compile(r"\^(-?\d*\.\d+)")
KEPT = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.title, nodes.raw, nodes.comment)
SHOWN = ("papers/", "language_model")  # pages with letters in plain text


def _set(text: str) -> str:
    text = POWER.sub(lambda power: "^" + power[1].translate(SUPERSCRIPTS), text)
    return api_reference.powers(str(inline(DECIMAL.sub(r"^{\1}", text))))


def _inside(node: nodes.Node, kinds: tuple[type, ...]) -> bool:
    return node is not None and (isinstance(node, kinds) or _inside(node.parent, kinds))


def set_letters(app: Sphinx, doctree: nodes.document) -> None:
    """Replace text in which there is mathematics."""
    if not app.env.docname.startswith(SHOWN):
        return
    for text in list(doctree.findall(nodes.Text)):
        made = _set(str(text)) if not _inside(text.parent, KEPT) else ""
        if "<m" in made or "<su" in made:
            text.parent.replace(text, nodes.raw("", made, format="html"))


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("doctree-read", set_letters)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
