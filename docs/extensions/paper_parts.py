"""What the pages of the papers show, from the code and from the answers on record: plain Markdown."""

import dataclasses
import importlib
import importlib.util
import inspect
import re
import textwrap
import typing
from pathlib import Path

from iclab.authoring.paper import Paper
from iclab.library import default_settings
from iclab.papers import PAPERS
from iclab.records import recorded, recorded_papers
from iclab.report.sentences import sentence
from iclab.settings import is_group, names_of, replaced, value_of
from iclab.statements import Part, Reading, Statement
from iclab.tallies import tally
from iclab.unstated import Unstated, shown

ROOT = Path(__file__).parents[2]
FIELD = re.compile(r"^    (\w+): [^=\n]+ = [^#\n]*(?:# (.*))?$", re.MULTILINE)
WIDTH = 130
BEGINS = re.compile(r" (?=(?:[-+*>#=|:]|\d+[.)])(?:\s|$))")  # what would begin a list or a heading on a line of its own
CODE = re.compile(r"`[^`]{1,80}`")
JOINED = "\u2060"  # stands for a space at which no line is broken


def escaped(text: str) -> str:
    """Plain text inside Markdown: stars, outer underscores and angles are signs. Code stays as it is."""
    return "".join(part if part.startswith("`") else _plain(part) for part in re.split(r"(`[^`]*`)", text))


def _plain(text: str) -> str:
    text = text.replace(">=", "≥").replace("<=", "≤").replace("*", "\\*")
    return re.sub(r"<(?=[A-Za-z/!?])", r"\<", re.sub(r"(?<!\w)_|_(?!\w)", r"\_", text))


def cell(text: str) -> str:
    """The same in a table."""
    return escaped(text).replace("|", "\\|")


def wrapped(text: str, level: int = 0) -> list[str]:
    """A paragraph, or an item of a list at a level of it, in lines of a page's width."""
    bullet = "- " if text.startswith("- ") else ""
    indent = "  " * level
    joined = BEGINS.sub(JOINED, CODE.sub(lambda code: code[0].replace(" ", JOINED), text.removeprefix(bullet)))
    lines = textwrap.wrap(
        joined,
        WIDTH,
        initial_indent=indent + bullet,
        subsequent_indent=indent + " " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(JOINED, " ") for line in lines]


def overview(folder: str) -> str:
    """All papers: authors, how many of their statements hold, what came out in one sentence."""
    lines = ["| paper | its statements | what came out |", "|---|---|---|"]
    for name in (name for name in PAPERS if name in recorded_papers()):
        entries = recorded(name)
        own, further = ([entry for entry in entries if entry["beyond"] is beyond] for beyond in (False, True))
        beyond = f"<br>beyond the paper: {tally(further)}" if further else ""
        missing = len(PAPERS[name].statements(default_settings(PAPERS[name]))) - len(entries)
        beyond += f"<br>not run at full size yet: {missing}" if missing else ""
        paper = f"[`{name}`]({folder}{name}.md): {cell(_reference(PAPERS[name]))}"
        lines.append(f"| {paper} | {tally(own)}{beyond} | {cell(sentence(own, PAPERS[name].facets))} |")
    return "\n".join(lines)


def _reference(paper: Paper) -> str:
    stop = "" if paper.title.endswith("?") else "."
    return f"{paper.title}{stop} {paper.citation}"


def title(paper: str) -> str:
    """The paper's title and authors, and where its report is."""
    found = PAPERS[paper]
    lines = wrapped(escaped(_reference(found)))
    if paper in recorded_papers():
        own = [entry for entry in recorded(paper) if not entry["beyond"]]
        told = f"{tally(own)}. {escaped(sentence(own, found.facets))}"
        lines += ["", *wrapped(f"**On record, at full size.** {told}")]
        lines += ["", f"[The referee's report](../referee/{paper}.md) says the same in two or three pages."]
    return "\n".join(lines)


def equation(paper: str) -> str:
    """The model."""
    return f"$$\n{PAPERS[paper].equation}\n$$"


def answers(paper: str) -> str:
    """The recorded answers of the quick profile and at full size, one row per statement."""
    lines = ["| statement | in the paper | quick | full size |", "|---|---|---|---|"]
    both = _records().recorded(paper)
    for name, entry in {**both["quick"], **both["paper"]}.items():
        found = (both[profile].get(name, {}).get("answer", "not run") for profile in ("quick", "paper"))
        lines.append(f"| `{name.partition('/')[2]}` | {cell(entry['source'])} | {' | '.join(found)} |")
    return "\n".join(lines)


def _records() -> typing.Any:
    spec = importlib.util.spec_from_file_location("recorded", ROOT / "benchmarks" / "recorded.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def statements(paper: str) -> str:
    """Every statement: what is said where, its rules and readings, what was chosen later, what was answered."""
    found = PAPERS[paper]
    every = found.statements(default_settings(found))
    records = _records()
    answered = records.recorded(paper)["paper"]
    told = {name: records.told(entry) for name, entry in answered.items()}
    lines = wrapped(
        f"`iclab list {paper}` names the same statements. Rules are those of the quick profile"
        + (", answers those of the recorded run at full size." if told else ".")
    )
    for heading, beyond in (("In the paper", False), ("Beyond the paper", True)):
        group = [statement for statement in every if statement.beyond == beyond]
        if group:
            lines += ["", f"### {heading}", "", f"{len(group)} statement{'s' * (len(group) > 1)}."]
        for statement in group:
            lines += _statement(found, statement, told.get(f"{paper}/{statement.name}", "not run" if told else ""))
    return "\n".join(lines)


def _statement(paper: Paper, statement: Statement, answer: str) -> list[str]:
    """One statement."""
    kinds = ", ".join(statement.kinds)
    lines = ["", f"#### {escaped(statement.source)} · `{statement.name}`", ""]
    lines += [*wrapped(escaped(statement.words)), ""]
    if answer:
        lines += wrapped(f"- **Answer at full size:** {escaped(answer)}")
    for part in statement.parts:
        lines += wrapped(f"- {_part(part)}")
    named = [reading for reading in statement.readings if reading.name or reading.why]
    if named:
        lines.append("- Readings:")
        lines += [line for reading in named for line in wrapped(f"- {_reading(reading)}", 1)]
    notes = {
        "Kinds" if len(statement.kinds) > 1 else "Kind": kinds,
        "Hypotheses": _hypotheses(paper, statement),
        "Our choices": "; ".join(statement.ours),
        "About the architecture": statement.architecture,
        "Chosen afterwards": statement.afterwards,
    }
    for word, text in notes.items():
        if text:
            lines += wrapped(f"- {word}: {escaped(text)}")
    return lines


def _part(part: Part) -> str:
    only = f" (in {', '.join(name or 'as stated' for name in part.readings)})" if part.readings else ""
    return f"Rule: {escaped(part.name)}: **{escaped(str(part.rule))}**{escaped(only)}"


def _reading(reading: Reading) -> str:
    """Its name, why it is plausible, and which settings it changes."""
    changes = ", ".join(f"`{name}={value}`" for name, value in reading.changes.items())
    name = f"`{reading.name}`" if reading.name else "as stated"
    why = f": {escaped(reading.why)}" if reading.why else ""
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
            words = "; not met: " + ", ".join(f"`{condition.formula}`" for condition in unmet) if unmet else ""
            where = f"in {reading.name}, " if reading.changes else ""
            told.append(f"{where}{len(theorem.conditions) - len(unmet)} of {len(theorem.conditions)} met{words}")
    return ". ".join(told)


def unstated(paper: str) -> str:
    """What the paper does not print: settings with the value taken and others that are as plausible; then sentences."""
    found = PAPERS[paper]
    named = [entry for entry in found.unstated if isinstance(entry, Unstated)]
    lines = []
    if named:
        lines += ["| `--set` | in the paper | quick | plausible | why |", "|---|---|---|---|---|"]
    for entry in named:
        taken = shown(value_of(default_settings(found), entry.setting))
        cells = (cell(entry.letter), cell(taken), cell(entry.values), cell(entry.source))
        lines.append(f"| `{entry.setting}` | {' | '.join(cells)} |")
    sentences = [entry for entry in found.unstated if isinstance(entry, str)]
    return "\n".join([*lines, "", *(line for text in sentences for line in wrapped(f"- {escaped(text)}"))])


def settings(paper: str) -> str:
    """Every setting: name, the letter and remark that stand beside it in the source, values in the two profiles."""
    found = PAPERS[paper]
    remarks = _remarks(default_settings(found))
    lines = ["| setting | in the paper | quick | paper |", "|---|---|---|---|"]
    for name in names_of(default_settings(found)):
        quick, full = (cell(str(value_of(found.settings[profile], name))) for profile in ("quick", "paper"))
        lines.append(f"| `{name}` | {cell(remarks.get(name, ''))} | {quick} | {full} |")
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
        lines += ["", f"### {escaped(theorem.source)} (`iclab theory {theorem.id}`)" if name else "", ""]
        lines += [*wrapped(escaped(theorem.statement)), ""]
        conditions = "; ".join(f"`{condition.formula}`" for condition in theorem.conditions)
        lines += wrapped(f"- If: {conditions}") if conditions else []
        lines += [line for rate in theorem.rates for line in wrapped(f"- Then {escaped(rate.name)}: `{rate.formula}`")]
    return "\n".join(lines)


def disagreements(paper: str) -> str:
    """Where the paper disagrees with itself: the list at the head of its theory module."""
    module = importlib.import_module(f"iclab.papers.{paper.replace('-', '_')}.theory")
    text = (module.__doc__ or "").split("Where the paper disagrees with itself:")[1]
    items = [" ".join(item.split()) for item in re.split(r"^- ", text, flags=re.MULTILINE)[1:]]
    return "\n".join(line for item in items for line in wrapped(f"- {escaped(item)}"))


def experiments(paper: str) -> str:
    """What is run."""
    lines = ["| experiment | what is run |", "|---|---|"]
    for name, experiment in PAPERS[paper].experiments.items():
        lines.append(f"| `{paper}/{name}` | {cell(experiment.words)} |")
    return "\n".join(lines)


MAKERS = (overview, title, equation, answers, statements, unstated, settings, theorems, disagreements, experiments)
