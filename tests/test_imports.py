"""Imports go down the map of docs/design.md only: what comes later may use what came before, never the other way round.

And no sentence in the source is cut in two, the second half a string that nobody reads.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def order():
    text = (ROOT / "docs" / "design.md").read_text().split("imports go down this list only.")[1]
    names = re.findall(r"^(\w+(?:\.py|/)) {2}", text, re.MULTILINE)
    return [name.removesuffix(".py").removesuffix("/") for name in names]


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("iclab"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]


def test_the_map_names_every_module_and_imports_go_down_it():
    names = order()
    package = ROOT / "src" / "iclab"
    there = [path for path in package.iterdir() if not path.name.startswith(("_", "py.typed"))]
    modules = {path.stem if path.suffix else path.name for path in there}
    assert modules == set(names)
    for path in package.rglob("*.py"):
        own = path.relative_to(package).parts[0].removesuffix(".py")
        if own not in ("__init__", "__main__"):
            for used in imports(path):
                assert names.index(used) <= names.index(own), (
                    f"{path.relative_to(ROOT)} imports iclab.{used}, which comes later"
                )


def alone(path):
    """Strings that are statements of their own, but no documentation in three quotation marks."""
    text = path.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr):
            line = lines[node.lineno - 1].lstrip()
            if line.startswith(('"', "'", 'f"', 'r"')) and not line.startswith(('"""', 'r"""')):
                yield f"{path.relative_to(ROOT)}, line {node.lineno}: {line}"


def test_no_string_stands_alone():
    """`WORDS = "one half "` with the other half on a line of its own is half a sentence, and no error."""
    folders = ("src", "tests", "examples", "docs", "benchmarks", "gallery")
    found = [place for folder in folders for path in (ROOT / folder).rglob("*.py") for place in alone(path)]
    assert not found
