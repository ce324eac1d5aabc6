"""Parts of pages that are written from the code, so that a page reads whole on a repository host and cannot go stale.

    python docs/extensions/generated.py    (or: make docs-write)

writes the text between every `<!-- generated: NAME ARGUMENT -->` and the next `<!-- end of generated text -->` again.
A test fails when the committed text is out of date. The makers are here and in `paper_parts`.
"""

import ast
import html
import importlib
import inspect
import re
import typing
from pathlib import Path

import api_reference
import paper_parts
from iclab.cli import COMMANDS
from iclab.skeletons import text_of
from paper_parts import escaped, wrapped

ROOT = Path(__file__).parents[2]
END = "<!-- end of generated text -->"
PART = re.compile(rf"^<!-- generated: (\w+) ?(\S*) -->\n.*?^{END}$", re.MULTILINE | re.DOTALL)


def docstring(name: str) -> str:
    """What a module says about itself."""
    return "\n".join(api_reference.markdown(importlib.import_module(name).__doc__, plain=escaped))


def skeleton(kind: str) -> str:
    """The file that `iclab new` writes."""
    return _code(text_of(kind), "tests/test_own.py runs what `iclab new` writes")


def source(path: str) -> str:
    """A file of the repository."""
    return _code((ROOT / path).read_text(), "tests/test_own.py runs this file")


def _code(text: str, reason: str) -> str:
    return f"<!-- not executed: {reason} -->\n```python\n{text.strip()}\n```"


def examples(_: str) -> str:
    """Every numbered example: what it says about itself, and its code."""
    lines = []
    for path in sorted((ROOT / "examples").glob("[0-9]*.py")):
        text = path.read_text()
        tree = ast.parse(text)
        said = ast.get_docstring(tree)
        code = "\n".join(text.splitlines()[tree.body[0].end_lineno :])
        first, _, rest = said.partition("\n")
        lines += [f"## {path.stem[:2]} {first.rstrip('.')}", "", f"`examples/{path.name}`", ""]
        lines += [
            *api_reference.markdown(rest, plain=escaped),
            "",
            _code(code, "tests/test_examples.py runs this file"),
            "",
        ]
    return "\n".join(lines)


def commands(_: str) -> str:
    """Every command of the command line, from the function behind it."""
    lines = []
    for name, function in COMMANDS.items():
        text, _, arguments = inspect.getdoc(function).partition("Args:\n")
        lines += [f"## iclab {name}", "", escaped(text.strip()), ""]
        for word, remark in re.findall(r"^    (\w+): (.*(?:\n        .*)*)", arguments, re.MULTILINE):
            lines += wrapped(f"- `{_option(function, word)}`: {escaped(' '.join(remark.split()))}")
        lines.append("")
    return "\n".join(lines)


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


MAKERS = {maker.__name__: maker for maker in (*paper_parts.MAKERS, docstring, skeleton, source, examples, commands)}


def pages() -> list[Path]:
    """The pages with such parts."""
    every = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in every if PART.search(page.read_text(encoding="utf-8"))]


def renewed(text: str) -> str:
    """A page with its parts written again."""
    return PART.sub(_renewed, text)


def _renewed(part: re.Match[str]) -> str:
    made = re.split(r"(^```.*?^```$)", MAKERS[part[1]](part[2]).strip(), flags=re.MULTILINE | re.DOTALL)
    text = "".join(piece if piece.startswith("```") else re.sub(r"\n{3,}", "\n\n", piece) for piece in made)
    return "\n\n".join([part[0].splitlines()[0], text, END])


if __name__ == "__main__":
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = renewed(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page.relative_to(ROOT))
