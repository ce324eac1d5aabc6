"""The page: one self-contained index.html that works as a local file and makes no requests.

It depends only on what it shows. The first screen gives the result of each paper in one sentence. A paper's table, a
statement and its figure are templates that the page's script inserts when they are opened. Styles and scripts are files
beside this one, inlined into the page; the words of a statement are always text, never markup.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
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
from iclab.report import meanings, sentences
from iclab.report.drawings import themed
from iclab.report.explorer import content, library
from iclab.report.figures import Drawn
from iclab.report.formats import as_script, duration, number
from iclab.report.mathematics import equation, inline
from iclab.report.strips import about, shown, strip
from iclab.statements import Table
from iclab.tallies import Answer, tally
from iclab.unstated import Unstated
from iclab.unstated import shown as written

SIGNS = {
    Answer.holds: "✓",
    Answer.holds_if: "✓",
    Answer.in_part: "◐",
    Answer.fails: "✕",
    Answer.fails_in_scaling: "✕",
    Answer.open: "?",
    Answer.not_asked: "·",
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
        counts=counted(statements),
        beyond=tally([statement for statement in statements if statement["beyond"]]),
        total=len(statements),
        index=as_script([_indexed(statement) for statement in statements]),
        identity=identity,
        environment=environment,
        seconds=seconds,
        command=functools.partial(command, identity),
        library=library() if any(paper["explorer"] for paper in papers) else None,
    )


def _paper(paper: Paper, statements: Sequence[Mapping[str, Any]], section: Section) -> dict[str, Any]:
    own = [statement for statement in statements if not statement["beyond"]]
    asked = own or statements
    return {
        "paper": paper,
        "sentence": sentences.sentence(asked, paper.facets),
        "brief": {statement["id"]: sentences.briefly(statement, paper.facets) for statement in statements},
        "unstated": [_unstated(entry, statements[0]["settings"]) for entry in paper.unstated],
        "equation": equation(paper.equation) if paper.equation else None,
        "statements": own,
        "beyond": [statement for statement in statements if statement["beyond"]],
        "figures": {name: _figure(paper, name, drawn, statements) for name, drawn in section.figures.items()},
        "tables": section.tables,
        "seconds": section.seconds,
        "counts": counted(asked),
        "explorer": {"shown": inside, "content": content(inside)} if (inside := section.exploration) else None,
    }


def _figure(paper: Paper, name: str, drawn: Drawn, statements: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    asked = next((one["statement"] for one in statements if one["figure"] == name), name)
    own = paper.figures[name].__doc__ if name in paper.figures else asked
    return {
        "svg": Markup(themed(drawn.svg.decode(), re.sub(r"[^\w.-]", "-", f"{paper.id}-{name}"))),
        "csv": drawn.csv,
        "caption": (own or name).strip(),
        "words": drawn.words,
    }


def _unstated(entry: Unstated | str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A setting that the paper does not state: its name for --set, its value here, other plausible values."""
    if isinstance(entry, str):
        return {"setting": "", "why": entry}
    here: Any = settings
    for name in entry.setting.split("."):
        here = here.get(name) if isinstance(here, Mapping) else None
    return {
        "setting": entry.setting,
        "here": "" if here is None else written(here),
        "letter": entry.letter,
        "plausible": entry.values,
        "why": entry.source,
    }


def _indexed(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The text that the search covers."""
    readings = statement["readings"]
    return {
        "id": statement["id"],
        "paper": statement["paper"],
        "source": statement["source"],
        "words": statement["statement"],
        "parts": " ".join([*part_names(statement), *(reading["name"] for reading in readings)]),
        "answer": statement["answer"],
        "asked": sum(len(reading["parts"]) for reading in readings),
        "beyond": statement["beyond"],
    }


def command(identity: Mapping[str, Any], *ids: str) -> str:
    """The command that repeats this; a paper from a user's file is named by the file."""
    files = identity.get("files", ())
    named = [re.sub(rf"^({'|'.join(map(re.escape, files))})(?=/|$)", r"\1.py", name) if files else name for name in ids]
    option = "--most-seeds" if len(identity.get("looks", ())) > 1 else "--seeds"
    words = ["iclab", "reproduce", *named, "--profile", str(identity["profile"]), option, str(identity["seeds"])]
    for name, value in identity.get("changes", {}).items():
        words += ["--set", f"{name}={value}"]
    return shlex.join(words)


def rendered(name: str, **given: Any) -> str:
    """A page from a template. A browser runs only scripts that carry its nonce, a random word."""
    return template(name).render(nonce=secrets.token_urlsafe(16), **given)


@functools.cache
def template(name: str) -> jinja2.Template:
    """A template of this folder. Every value is escaped unless it is `Markup`."""
    environment = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_text),
    )
    environment.globals |= {"signs": SIGNS, "shown": shown, "strip": strip, "source": _inlined}
    environment.globals |= {"number": number, "duration": duration, "meaning": meanings.meaning}
    environment.globals |= {"nearness": meanings.nearness, "hypotheses": meanings.hypotheses}
    environment.globals |= {"control": meanings.control, "part_names": part_names, "about": about, "drawn": drawn}
    environment.globals |= {"by_name": by_name, "told": meanings.told, "remarks": meanings.remarks}
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


def drawn(svg: str, name: str) -> Markup:
    """The drawing of an entry; empty if it contains anything but a drawing."""
    active = re.search(r"<(script|foreignObject|iframe|image|a)\b|\son\w+\s*=|href\s*=\s*[\"'][^#]", svg, re.IGNORECASE)
    return Markup("") if active or "<svg" not in svg else Markup(themed(svg, re.sub(r"[^\w.-]", "-", name)))


def part_names(statement: Mapping[str, Any]) -> list[str]:
    """The parts of all readings, each once, in order."""
    return list(dict.fromkeys(part["name"] for reading in statement["readings"] for part in reading["parts"]))


def by_name(parts: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The parts of a reading by their names."""
    return {part["name"]: part for part in parts}


def counted(statements: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How many statements have which answer."""
    found = collections.Counter(str(statement["answer"]) for statement in statements)
    return {str(answer): found[str(answer)] for answer in Answer}
