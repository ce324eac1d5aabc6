"""The page: one self-contained index.html that works from a file, without any request.

It is a function of what it shows. Styles and scripts are files beside this one, put into the page; what a statement
says is always text, never markup.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import re
import secrets
import shlex
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from iclab.authoring.exploration import Exploration
from iclab.authoring.paper import Paper
from iclab.drawing import COLOURS
from iclab.report.explorer import content, library
from iclab.report.figures import Drawn
from iclab.report.formats import duration, number
from iclab.report.mathematics import equation, inline
from iclab.statements import Table
from iclab.tallies import Answer, tally

SIGNS = {
    Answer.holds: "✓",
    Answer.holds_if: "✓",
    Answer.in_part: "◐",
    Answer.fails: "✕",
    Answer.fails_in_scaling: "✕",
    Answer.open: "?",
    Answer.not_asked: "·",
}
# What the figures' own colours are called on the page, where a dark theme gives them other values.
INKS = {"#000000": "ink", "#ffffff": "paper", "#dddddd": "grid", "#333333": "soft", "#bbbbbb": "faint"} | {
    colour.lower(): f"series-{number}" for number, colour in enumerate(COLOURS, 1)
}


@dataclasses.dataclass(frozen=True)
class Section:
    """What a paper's part of the page shows beside its statements."""

    figures: Mapping[str, Drawn]
    tables: Mapping[str, Table]
    seconds: float
    exploration: Exploration | None = None


def render_page(
    identity: Mapping[str, Any],
    environment: Mapping[str, Any],
    statements: Sequence[Mapping[str, Any]],
    sections: Mapping[str, Section],
    seconds: float,
    known: Mapping[str, Paper],
) -> str:
    """The HTML of a run: what it is, where it ran, its statements, and figures and tables by paper."""
    papers = []
    for paper in known.values():
        own = [statement for statement in statements if statement["paper"] == paper.id]
        if own:
            papers.append(_paper(paper, own, sections[paper.id]))
    return rendered(
        "page.html",
        papers=papers,
        counts=counted(_asked(statements)),
        beyond=tally([statement for statement in statements if statement["beyond"]]),
        total=len(statements),
        untrained=[statement for statement in statements if statement["also_untrained"]],
        identity=identity,
        environment=environment,
        seconds=seconds,
        command=functools.partial(command, identity),
        library=library() if any(paper["explorer"] for paper in papers) else None,
    )


def _paper(paper: Paper, statements: Sequence[Mapping[str, Any]], section: Section) -> dict[str, Any]:
    figures = {}
    for name, drawn in section.figures.items():
        about = [statement for statement in statements if statement["figure"] == name]
        if about:
            own = paper.figures[name].__doc__ if name in paper.figures else about[0]["statement"]
            figures[name] = {
                "svg": Markup(themed(drawn.svg.decode(), re.sub(r"[^\w.-]", "-", f"{paper.id}-{name}"))),
                "csv": drawn.csv,
                "caption": (own or name).strip(),
                "words": drawn.words,
                "statements": [statement["id"] for statement in about],
            }
    return {
        "paper": paper,
        "unstated": [str(entry) for entry in paper.unstated],
        "equation": equation(paper.equation) if paper.equation else None,
        "groups": [group for group in _groups(statements) if group[1]],
        "figures": figures,
        "tables": section.tables,
        "seconds": section.seconds,
        "counts": counted(_asked(statements)),
        "explorer": {"shown": inside, "content": content(inside)} if (inside := section.exploration) else None,
    }


def command(identity: Mapping[str, Any], *ids: str) -> str:
    """The command that makes this again; what comes from a user's file is asked for by the file."""
    files = identity.get("files", ())
    named = [re.sub(rf"^({'|'.join(map(re.escape, files))})(?=/|$)", r"\1.py", name) if files else name for name in ids]
    option = "--most-seeds" if len(identity.get("looks", ())) > 1 else "--seeds"
    words = ["iclab", "reproduce", *named, "--profile", str(identity["profile"]), option, str(identity["seeds"])]
    for name, value in identity.get("changes", {}).items():
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def rendered(name: str, **given: Any) -> str:
    """A page from a template. Only scripts that carry its nonce, a random word, are run by a browser."""
    return template(name).render(nonce=secrets.token_urlsafe(16), **given)


@functools.cache
def template(name: str) -> jinja2.Template:
    """A template of this folder. Everything put into one is escaped unless it says that it is markup."""
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_text),
    )
    environment.globals |= {"signs": SIGNS, "shown": shown, "strip": strip, "source": _inlined}
    environment.globals |= {"number": number, "duration": duration}
    environment.filters |= {"mathematics": inline, "slug": slug}
    return environment.get_template(name)


def _text(name: str) -> str:
    return (resources.files("iclab.report") / name).read_text(encoding="utf-8")


def slug(answer: str) -> str:
    """An answer as the name of a style."""
    return answer.replace(" ", "-")


def _inlined(name: str) -> Markup:
    """A style or a script of this folder."""
    return Markup(_text(name))


def themed(svg: str, prefix: str) -> str:
    """An SVG to put inside HTML: with colours that follow the theme, and without what only costs time to load.

    Ids stay where something refers to them, under names of this figure; coordinates lose the digits that no screen
    shows; the font is named once; rules that would reach the rest of the page become attributes.
    """
    body = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    points = float((re.search(r'width="([\d.]+)pt"', body) or ["", "600"])[1])
    size = (
        f"min-width: {0.85 * points:.0f}px; max-width: {1.75 * points:.0f}px"  # never too small to read, nor blown up
    )
    body = body.replace(
        "<svg ", f'<svg stroke-linejoin="round" font-family="DejaVu Sans, Verdana, sans-serif" style="{size}" ', 1
    )
    used = set(re.findall(r"(?:url\(|href=\")#([^)\"]+)", body))
    body = re.sub(r'\s+id="([^"]+)"', lambda found: f' id="{prefix}-{found[1]}"' if found[1] in used else "", body)
    body = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", body)
    body = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}-\1"', body)
    body = re.sub(r"font-family: [^;\"]*'[^;\"]*;? ?", "", body)
    body = re.sub(r'\b(d|x|y|transform)="([^"]*)"', lambda found: f'{found[1]}="{_rounded(found[2])}"', body)
    body = re.sub(r' transform="rotate\(-?0 [^"]*"', "", body)
    body = re.sub(r">\s+<", "><", body)
    for _ in range(3):  # groups that only grouped
        body = re.sub(r"<g>((?:(?!</?g[ >]).)*)</g>", r"\1", body)
    return re.sub(
        r"#[0-9a-fA-F]{6}\b",
        lambda found: f"var(--figure-{INKS[found[0].lower()]}, {found[0]})" if found[0].lower() in INKS else found[0],
        body,
    )


def _rounded(coordinates: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"(\d+\.\d\d)\d+", r"\1", coordinates)).strip()


def strip(check: Mapping[str, Any], beside: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any] | None:
    """Where a check's rule, interval, mean and seeds lie on a strip, in per cent of its width; None without a finite
    value.

    Checks that are shown beside it share its scale.
    """
    rule = check.get("rule_low"), check.get("rule_high")
    values = [value for value in check["values"] if value is not None]
    marks = [
        value for one in (check, *beside) for value in (one["low"], one["high"], one["measured"], *one["values"], *rule)
    ]
    marks = [value for value in marks if value is not None]
    if check["measured"] is None or not marks:
        return None
    low, high = min(marks), max(marks)
    margin = 0.08 * (high - low) or 0.1 * max(abs(high), 1e-9)
    low, high = low - margin, high + margin

    def place(value: float) -> float:
        return round(100 * min(1.0, max(0.0, (value - low) / (high - low))), 2)

    begin, end = (place(-math.inf if rule[0] is None else rule[0]), place(math.inf if rule[1] is None else rule[1]))
    found: dict[str, Any] = {
        "rule": (begin, end - begin),
        "mean": place(check["measured"]),
        "seeds": [*dict.fromkeys(map(place, values))],
    }
    if check["low"] is not None and check["high"] is not None:
        found["interval"] = (place(check["low"]), round(place(check["high"]) - place(check["low"]), 2))
    return found


def _asked(statements: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """What is counted: the papers' own statements; where there are none, those beyond them."""
    return [statement for statement in statements if not statement["beyond"]] or statements


def _groups(statements: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """The paper's own statements, and those beyond it, under their headings."""
    own = [statement for statement in statements if not statement["beyond"]]
    return [("", own), ("Beyond the paper", [statement for statement in statements if statement["beyond"]])]


def shown(statement: Mapping[str, Any]) -> Mapping[str, Any]:
    """The part that a statement's strip shows: of the reading that its answer is about, the first that decided."""
    about = next((r for r in statement["readings"] if r["answer"] == "holds"), statement["readings"][0])
    other = [part for part in about["parts"] if part["outcome"] not in ("holds", "not asked")]
    return (other or about["parts"])[0]


def counted(statements: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many statements have which answer."""
    found = collections.Counter(str(statement["answer"]) for statement in statements)
    return {str(answer): found[str(answer)] for answer in Answer}
