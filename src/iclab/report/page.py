"""The page: one self-contained index.html that works from a file, without any request."""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2

from iclab.claims import Table
from iclab.papers import PAPERS


def number(value: float | None) -> str:
    """A measured number, short.

    >>> number(0.00012), number(None), number(3.14159)
    ('0.00012', '–', '3.14')
    """
    return "–" if value is None else f"{value:.3g}"


def _inline(svg: str, prefix: str) -> str:
    """An SVG to put inside HTML: without the XML prologue, with ids of its own so that figures do not share clip paths."""
    body = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}-\1"', body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    return re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', body)


def render_page(
    figures_at: Path,
    identity: Mapping[str, Any],
    claims: Sequence[dict[str, Any]],
    tables: Mapping[str, Mapping[str, Table]],
    seconds: float,
) -> str:
    """The HTML of a run: what it is (`identity`), its claims, its tables by paper, its figures as <paper>/<name>.svg."""
    template = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    ).from_string((resources.files("iclab.report") / "page.html").read_text())
    papers = []
    for paper in PAPERS.values():
        own = [claim for claim in claims if claim["paper"] == paper.id]
        figures = {}
        for claim in own:
            name = claim["figure"]
            path = figures_at / paper.id / f"{name}.svg"
            if name and name not in figures and path.exists():
                figures[name] = {
                    "svg": _inline(path.read_text(), f"{paper.id}-{name}"),
                    "alt": (paper.figures[name].__doc__ or name).strip(),
                    "claims": [entry["id"] for entry in own if entry["figure"] == name],
                }
        if own:
            papers.append(
                {"paper": paper, "claims": own, "figures": figures, "tables": tables[paper.id], "counts": _counts(own)}
            )
    return template.render(papers=papers, number=number, seconds=seconds, identity=identity)


def _counts(claims: Sequence[dict[str, Any]]) -> dict[str, int]:
    return dict(collections.Counter(str(claim["verdict"]) for claim in claims))
