"""Parts of pages that are made from the code when the site is built, so that they cannot go stale.

A comment `<!-- generated: NAME ARGUMENT -->` on a line of its own is replaced by Markdown: the claims of a paper, its settings,
its theorems, what it leaves open, the commands, the reference of a module (see `reference`).
"""

import ast
import dataclasses
import html
import importlib
import inspect
import re
import typing
from pathlib import Path

from sphinx.application import Sphinx

import reference
from iclab.cli import COMMANDS
from iclab.papers import PAPERS, Paper
from iclab.report.mathematics import inline
from iclab.settings import is_group, names_of, value_of
from iclab.skeletons import text_of

ROOT = Path(__file__).parents[2]
TOPICS = {
    "": "Theorems, figures and tables",
    "rates": "Predicted exponents and regions",
    "gpt2": "The same questions to GPT-2",
}
MARK = re.compile(r"^<!-- generated: (\w+) ?(\S*) -->$", re.MULTILINE)
FIELD = re.compile(r"^    (\w+): [^=\n]+ = [^#\n]*(?:# (.*))?$", re.MULTILINE)


SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
POWER = re.compile(r"(?<=[A-Za-zΑ-ω12])([⁰¹²³⁴-⁹⁻]+)")


def _letters(text: str) -> str:
    """Plain text with letters set as mathematics, safe inside Markdown."""
    text = POWER.sub(lambda power: "^" + power[1].translate(SUPERSCRIPTS), text).replace(">=", "≥").replace("<=", "≤")
    return reference.powers(str(inline(text))).replace("|", "&#124;").replace("*", "&#42;").replace("_", "&#95;")


def _formula(text: str) -> str:
    """The same where every single letter is one of mathematics."""
    parts = re.split(r"(<math>.*?</math>|<[^>]*>|&\S+;)", _letters(text))
    set_ = [part if at % 2 else re.sub(r"\b([A-Za-z])\b", r"<math><mi>\1</mi></math>", part) for at, part in enumerate(parts)]
    return f"<span class='part'>{''.join(set_)}</span>"


def _quick(paper: Paper) -> typing.Any:
    return paper.settings["quick"]


def title(paper: str) -> str:
    """The paper's title and authors."""
    found = PAPERS[paper]
    return f"*{found.title}* {found.citation}"


def equation(paper: str) -> str:
    """The model."""
    return f"$$\n{PAPERS[paper].equation}\n$$"


def claims(paper: str) -> str:
    """Every claim: what is said where, by which rule it is judged, what was chosen later."""
    found = PAPERS[paper]
    rows = found.claims(_quick(found))
    lines = [f"{len(rows)} claims, as `iclab list {paper}` names them, with the rules of the quick profile.", ""]
    for topic in dict.fromkeys(claim.topic for claim in sorted(rows, key=lambda claim: list(TOPICS).index(claim.topic))):
        chosen = [claim for claim in rows if claim.topic == topic]
        lines += [f"### {TOPICS[topic]}", ""]
        for claim in chosen:
            checks = "<br>".join(f"{_letters(check.name)}: <b>{_letters(str(check.rule))}</b>" for check in claim.checks)
            lines += [f"`{claim.id.split('/', 1)[1]}` · {_letters(claim.source)}", f": {_letters(claim.statement)}", ""]
            lines += [f"  <span class='rule'>{checks}</span>", ""]
            if claim.afterwards:
                lines += [f"  <span class='afterwards'>Chosen afterwards: {_letters(claim.afterwards)}</span>", ""]
    return "\n".join(lines)


def unstated(paper: str) -> str:
    """What the claims list as unstated in the paper: for all claims first, then where only some need it."""
    rows = PAPERS[paper].claims(_quick(PAPERS[paper]))
    users: dict[str, list[str]] = {}
    for claim in rows:
        for line in claim.unstated:
            users.setdefault(line, []).append(claim.id.split("/", 1)[1])
    lines = []
    for line, ids in sorted(users.items(), key=lambda item: -len(item[1])):
        names = ", ".join(f"`{name}`" for name in ids) if len(ids) <= 6 else f"{len(ids)} of {len(rows)} claims"
        who = "" if len(ids) == len(rows) else f" ({names})"
        lines.append(f"- {_letters(line)}{who}")
    return "\n".join(lines)


def settings(paper: str) -> str:
    """Every setting: name, the letter and remark that stand beside it in the source, values in the two profiles."""
    found = PAPERS[paper]
    remarks = _remarks(_quick(found))
    lines = ["| setting | in the paper | quick | paper |", "|---|---|---|---|"]
    for name in names_of(_quick(found)):
        quick, full = (value_of(found.settings[profile], name) for profile in ("quick", "paper"))
        lines.append(f"| `{name}` | {_letters(remarks.get(name, ''))} | {quick} | {full} |")
    return "\n".join(lines)


def _remarks(settings: typing.Any) -> dict[str, str]:
    """What stands behind every setting in the source, by its name; of those in a group too."""
    found = dict(FIELD.findall(inspect.getsource(type(settings))))
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if is_group(value):
            found |= {f"{field.name}.{name}": remark for name, remark in _remarks(value).items()}
    return found


def theorems(paper: str) -> str:
    """Every theorem with its conditions and rates, as formulas."""
    found = PAPERS[paper]
    lines = []
    for theorem in found.theorems(found.symbols(_quick(found)), 1.0):
        lines += [f"`{theorem.id.split('/', 1)[1]}` · {_letters(theorem.source)}", f": {_letters(theorem.statement)}", ""]
        for word, parts in (("if", theorem.conditions), ("then", theorem.rates)):
            if parts:
                formulas = (_formula(f"{part.name}: {part.formula}" if word == "then" else part.formula) for part in parts)
                lines += [f"  <span class='rule'><b>{word}</b> {' '.join(formulas)}</span>", ""]
    return "\n".join(lines)


def disagreements(paper: str) -> str:
    """Where the paper disagrees with itself: the list at the head of its theory module."""
    module = importlib.import_module(f"iclab.papers.{paper.replace('-', '_')}.theory")
    text = (module.__doc__ or "").split("Where the paper disagrees with itself:")[1]
    items = [" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.MULTILINE)[1:]]
    return "\n".join(f"- {_letters(item)}" for item in items)


def experiments(paper: str) -> str:
    """What is run."""
    lines = ["| experiment | what is run |", "|---|---|"]
    for name, experiment in PAPERS[paper].experiments.items():
        first = (experiment.run.__doc__ or "").strip().splitlines()[0]
        lines.append(f"| `{paper}/{name}` | {_letters(first)} |")
    return "\n".join(lines)


def docstring(name: str) -> str:
    """What a module says about itself."""
    return "\n".join(reference.markdown(importlib.import_module(name).__doc__))


def skeleton(kind: str) -> str:
    """The file that `iclab new` writes. The tests run it."""
    return f"```python\n{text_of(kind)}```"


def source(path: str) -> str:
    """A file of the repository that the tests run."""
    return f"```python\n{(ROOT / path).read_text()}```"


def examples(_: str) -> str:
    """Every numbered example: what it says about itself, and its code."""
    lines = []
    for path in sorted((ROOT / "examples").glob("[0-9]*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        said = ast.get_docstring(tree)
        code = "\n".join(text.splitlines()[tree.body[0].end_lineno :]).strip()
        first, _, rest = said.partition("\n")
        lines += [f"## {path.stem[:2]} {first.rstrip('.')}", "", f"`examples/{path.name}`", ""]
        lines += [*reference.markdown(rest), "", "```python", code, "```", ""]
    return "\n".join(lines)


def commands(_: str) -> str:
    """Every command of the command line, from the function behind it."""
    lines = []
    for name, function in COMMANDS.items():
        text, _, arguments = inspect.getdoc(function).partition("Args:\n")
        lines += [f"## iclab {name}", "", _safe(text.strip()), ""]
        for word, remark in re.findall(r"^    (\w+): (.*(?:\n        .*)*)", arguments, re.MULTILINE):
            lines += [f"`{_option(function, word)}`", f": {_safe(' '.join(remark.split()))}", ""]
    return "\n".join(lines)


def _safe(text: str) -> str:
    """Outside of code a less-than sign begins no tag."""
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in re.split(r"(`[^`]*`)", text))


def _option(function: typing.Callable, word: str) -> str:
    """How an argument is written on the command line."""
    parameter = inspect.signature(function).parameters[word]
    hint = typing.get_type_hints(function, include_extras=True)[word]
    marks = getattr(hint, "__metadata__", ())
    metavar = next((mark.metavar for mark in marks if getattr(mark, "metavar", None)), word.upper())
    name = next((mark.name for mark in marks if getattr(mark, "name", None)), word).replace("_", "-")
    if any("Positional" in repr(mark) or "POSITIONAL" in repr(mark) for mark in marks):
        return html.unescape(metavar)
    return f"--{name}" if isinstance(parameter.default, bool) else f"--{name} {metavar}"


PAPER_PARTS = (title, equation, claims, unstated, settings, theorems, disagreements, experiments)
MAKERS = {maker.__name__: maker for maker in (*PAPER_PARTS, docstring, skeleton, source, examples, commands, reference.module)}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace every mark of a page."""
    source[0] = MARK.sub(lambda mark: MAKERS[mark[1]](mark[2]), source[0])


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
