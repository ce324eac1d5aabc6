"""Parts of pages that are made from the code when the site is built, so that they cannot go stale.

A comment `<!-- generated: NAME ARGUMENT -->` on a line of its own is replaced by Markdown: the statements of a paper,
its settings, its theorems, what it leaves open, the commands, the reference of a module (see `reference`).
"""

import ast
import dataclasses
import html
import importlib
import importlib.util
import inspect
import re
import typing
from pathlib import Path

from sphinx.application import Sphinx

import reference
from iclab.authoring.paper import Paper
from iclab.cli import COMMANDS
from iclab.library import default_settings
from iclab.papers import PAPERS
from iclab.report.mathematics import inline
from iclab.settings import is_group, names_of, replaced, value_of
from iclab.skeletons import text_of
from iclab.statements import Part, Reading, Statement
from iclab.unstated import Unstated, shown

ROOT = Path(__file__).parents[2]
MARK = re.compile(r"^<!-- generated: (\w+) ?(\S*) -->$", re.MULTILINE)
FIELD = re.compile(r"^    (\w+): [^=\n]+ = [^#\n]*(?:# (.*))?$", re.MULTILINE)


SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
POWER = re.compile(r"(?<=[A-Za-zΑ-ω12])([⁰¹²³⁴-⁹⁻]+)")
DECIMAL = re.compile(r"\^(-?\d*\.\d+)")


def _letters(text: str) -> str:
    """Plain text with letters set as mathematics, safe inside Markdown; code stays as it is."""
    return "".join(part if part.startswith("`") else _set(part) for part in re.split(r"(`[^`]*`)", text))


def _set(text: str) -> str:
    text = POWER.sub(lambda power: "^" + power[1].translate(SUPERSCRIPTS), text).replace(">=", "≥").replace("<=", "≤")
    text = DECIMAL.sub(r"^{\1}", text)
    return reference.powers(str(inline(text))).replace("|", "&#124;").replace("*", "&#42;").replace("_", "&#95;")


def _formula(text: str) -> str:
    """The same where every single letter is one of mathematics."""
    parts = re.split(r"(<math>.*?</math>|<[^>]*>|&\S+;)", _letters(text))
    letter, italic = re.compile(r"\b([A-Za-z])\b"), r"<math><mi>\1</mi></math>"
    whole = "".join(part if at % 2 else letter.sub(italic, part) for at, part in enumerate(parts))
    return f"<span class='part'>{whole}</span>"


def title(paper: str) -> str:
    """The paper's title and authors."""
    found = PAPERS[paper]
    return f"*{found.title}* {found.citation}"


def equation(paper: str) -> str:
    """The model."""
    return f"$$\n{PAPERS[paper].equation}\n$$"


def statements(paper: str) -> str:
    """Every statement: what is said where, by which rules it is judged, in which readings, what was chosen later."""
    found = PAPERS[paper]
    every = found.statements(default_settings(found))
    lines = [f"As `iclab list {paper}` names them, with the rules of the quick profile.", ""]
    for heading, beyond in (("In the paper", False), ("Beyond the paper", True)):
        group = [statement for statement in every if statement.beyond == beyond]
        if group:
            lines += [f"### {heading}", "", f"{len(group)} statement{'s' * (len(group) > 1)}.", ""]
        for statement in group:
            lines += _statement(found, statement)
    return "\n".join(lines)


def _statement(paper: Paper, statement: Statement) -> list[str]:
    """One statement as an entry of a list of definitions."""
    kinds = f"<span class='kinds'>{', '.join(statement.kinds)}</span>"
    lines = [f"`{statement.name}` · {_letters(statement.source)} · {kinds}", f": {_letters(statement.words)}", ""]
    lines += [f"  <span class='rule'>{'<br>'.join(_part(part) for part in statement.parts)}</span>", ""]
    named = [reading for reading in statement.readings if reading.name or reading.why]
    if named:
        lines += ["  <span class='note'>Readings:</span>", ""]
        lines += [f"  - {_reading(reading)}" for reading in named]
        lines.append("")
    notes = {
        "Hypotheses": _hypotheses(paper, statement),
        "Ours": "; ".join(statement.ours),
        "About the architecture": statement.architecture,
        "Chosen afterwards": statement.afterwards,
    }
    for word, text in notes.items():
        if text:
            lines += [f"  <span class='note'>{word}: {_letters(text)}</span>", ""]
    return lines


def _part(part: Part) -> str:
    only = f" (in {', '.join(name or 'as stated' for name in part.readings)})" if part.readings else ""
    return f"{_letters(part.name)}: <b>{_letters(str(part.rule))}</b>{_letters(only)}"


def _reading(reading: Reading) -> str:
    """Its name, why it is plausible, and which settings it changes."""
    changes = ", ".join(f"`{name}={value}`" for name, value in reading.changes.items())
    name = f"`{reading.name}`" if reading.name else "as stated"
    why = f": {_letters(reading.why)}" if reading.why else ""
    return f"{name}{why}{f' ({changes})' if changes else ''}"


def _hypotheses(paper: Paper, statement: Statement) -> str:
    """How many of the theorem's conditions are met at the quick settings, and where a reading changes them."""
    told = []
    for reading in statement.readings:
        if reading.changes or not told:
            at = replaced(default_settings(paper), reading.changes)
            theorem = paper.theorem(statement.hypotheses or statement.name, at)
            if theorem is None or not theorem.conditions:
                return ""
            unmet = [condition for condition in theorem.conditions if not condition.satisfied]
            words = "; not met: " + ", ".join(condition.formula for condition in unmet) if unmet else ""
            where = f"in {reading.name}, " if reading.changes else ""
            told.append(f"{where}{len(theorem.conditions) - len(unmet)} of {len(theorem.conditions)} met{words}")
    return ". ".join(told)


def answers(paper: str) -> str:
    """The recorded answers of the quick profile and at full size (`benchmarks/recorded.py`)."""
    spec = importlib.util.spec_from_file_location("recorded", ROOT / "benchmarks" / "recorded.py")
    records = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(records)
    lines = ["| statement | in the paper | quick | full size |", "|---|---|---|---|"]
    for name, *cells in records.rows(paper):
        lines.append(f"| `{name}` | {' | '.join(map(_letters, cells))} |")
    return "\n".join(lines)


def unstated(paper: str) -> str:
    """What the paper does not print: settings with the value taken and others that are as plausible; then sentences."""
    found = PAPERS[paper]
    named = [entry for entry in found.unstated if isinstance(entry, Unstated)]
    lines = []
    if named:
        lines += ["| `--set` | in the paper | quick | plausible | why |", "|---|---|---|---|---|"]
    for entry in named:
        taken = shown(value_of(default_settings(found), entry.setting))
        cells = (_letters(entry.letter), taken, entry.values, _letters(entry.source))
        lines.append(f"| `{entry.setting}` | {' | '.join(cells)} |")
    sentences = [entry for entry in found.unstated if isinstance(entry, str)]
    return "\n".join([*lines, "", *(f"- {_letters(sentence)}" for sentence in sentences)])


def settings(paper: str) -> str:
    """Every setting: name, the letter and remark that stand beside it in the source, values in the two profiles."""
    found = PAPERS[paper]
    remarks = _remarks(default_settings(found))
    lines = ["| setting | in the paper | quick | paper |", "|---|---|---|---|"]
    for name in names_of(default_settings(found)):
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
    for theorem in found.theorems(found.symbols(default_settings(found)), 1.0):
        name = theorem.id.partition("/")[2]
        lines += [f"`{name}` · {_letters(theorem.source)}", f": {_letters(theorem.statement)}", ""]
        for word, parts in (("if", theorem.conditions), ("then", theorem.rates)):
            if parts:
                told = (f"{part.name}: {part.formula}" if word == "then" else part.formula for part in parts)
                formulas = (_formula(text) for text in told)
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
        lines.append(f"| `{paper}/{name}` | {_letters(experiment.words)} |")
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
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else part.replace("<", "&lt;") for part in parts)


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


PAPER_PARTS = (title, equation, answers, statements, unstated, settings, theorems, disagreements, experiments)
OTHER_PARTS = (docstring, skeleton, source, examples, commands, reference.module, reference.exports)
MAKERS = {maker.__name__: maker for maker in (*PAPER_PARTS, *OTHER_PARTS)}


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace every mark of a page."""
    source[0] = MARK.sub(lambda mark: MAKERS[mark[1]](mark[2]), source[0])


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
