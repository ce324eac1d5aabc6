"""The reference of a module, from its source: signatures with their shapes as written, docstrings as Markdown.

Docstrings here are plain text with tables, formulas indented by four spaces and doctests. Stars and underscores in them are
letters of papers (v*_s, W_Q), not emphasis; two stars are bold.
"""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

from iclab.report.mathematics import inline


def module(name: str) -> str:
    """A section for the module: its docstring, then every public class, function and documented name in the order written."""
    tree = ast.parse(Path(find_spec(name).origin).read_text())
    lines = [f"## {name}", "", f"```{{py:module}} {name}", "```", "", *markdown(ast.get_docstring(tree)), ""]
    body = tree.body
    for node, following in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            lines += _function(node, "function", 4)
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            lines += _class(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign) and _text(following):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            lines += _directive("data", ast.unparse(target), markdown(_text(following)), 4)
    return "\n".join(lines)


def _text(node: ast.stmt | None) -> str:
    """The string that a statement is, if it is one: how a name is documented."""
    constant = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return node.value.value if constant else ""


def _directive(kind: str, head: str, body: list[str], ticks: int) -> list[str]:
    return ["`" * ticks + f"{{py:{kind}}} {head}", "", *body, "`" * ticks, ""]


def _signature(node: ast.FunctionDef, method: bool) -> str:
    arguments = node.args
    if method and arguments.args and not _decorated(node, "staticmethod"):
        arguments = ast.arguments(**{**dict(ast.iter_fields(arguments)), "args": arguments.args[1:]})
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(arguments)}){returns}"


def _decorated(node: ast.FunctionDef, name: str) -> bool:
    return any(name in ast.unparse(decorator) for decorator in node.decorator_list)


def _function(node: ast.FunctionDef, kind: str, ticks: int) -> list[str]:
    body = markdown(ast.get_docstring(node))
    if _decorated(node, "property"):
        returns = f": {ast.unparse(node.returns)}" if node.returns else ""
        return _directive("property", node.name, [f"`{returns[2:]}`: {body[0]}", *body[1:]], ticks)
    return _directive(kind, _signature(node, kind == "method"), body, ticks)


def _class(node: ast.ClassDef) -> list[str]:
    """Fields as a table, methods below. Fields marked static decide what is compiled; the others are traced."""
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    members = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name != "__init__"]
    shown = [part for part in members if part.name == "__call__" or not part.name.startswith("_")]
    body = markdown(ast.get_docstring(node))
    if fields:
        body += ["", "| field | type and shape | default |", "|---|---|---|"]
        body += [f"| `{ast.unparse(part.target)}` | {_type(part)} | {_default(part.value)} |" for part in fields]
    values = [part for part in node.body if isinstance(part, ast.Assign)]
    if values and any("Enum" in ast.unparse(base) for base in node.bases):
        body += ["", "Values: " + ", ".join(f"`{ast.unparse(part.targets[0])}`" for part in values) + "."]
    body.append("")
    for part in shown:
        body += _function(part, "method", 4)
    start = next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == "__init__"), None)
    head = _signature(start, True).replace("__init__", node.name, 1).removesuffix(" -> None") if start else node.name
    return _directive("class", head, body, 6)


def _type(part: ast.AnnAssign) -> str:
    static = "static=True" in (ast.unparse(part.value) if part.value else "")
    return f"`{_cell(ast.unparse(part.annotation))}`" + (" static" if static else "")


def _default(value: ast.expr | None) -> str:
    if value is None:
        return ""
    if isinstance(value, ast.Call):
        given = {word.arg: word.value for word in value.keywords}
        value = given.get("default") or given.get("default_factory")
        if value is None:
            return ""
    return f"`{_cell(ast.unparse(value))}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def markdown(text: str | None) -> list[str]:
    """A docstring as lines of Markdown: doctests and formulas fenced, single stars and angles kept as they are."""
    lines: list[str] = []
    fence = ""
    coded = False  # inside a table whose first column holds names of the code
    for line in (text or "").strip().splitlines():
        coded = line.startswith("|") and (coded or line.startswith(("| code |", "| word |")))
        if coded and not line.startswith(("| code |", "| word |", "|--")):
            line = _code_cell(line)
        if fence == "pycon" and not line.strip():
            lines += ["```", ""]
            fence = ""
            continue
        if fence == "text" and line.strip() and not line.startswith("    "):
            while not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            fence = ""
        if not fence and line.startswith(">>> "):
            fence = "pycon"
            lines += ["", "```pycon"]
        elif not fence and line.startswith("    ") and (not lines or not lines[-1].strip()):
            fence = "text"
            lines.append("```text")
        lines.append(line.removeprefix("    ") if fence == "text" else line if fence else _plain(line))
    return [*lines, "```"] if fence else lines or [""]


def _plain(line: str) -> str:
    """Outside of code: letters are set as mathematics, a single star is a star, and no line begins a list by accident."""
    parts = re.split(r"(`[^`]*`)", line)
    text = "".join(part if part.startswith("`") else _escape(part) for part in parts)
    return re.sub(r"^([+#>]|\d+[.)])(?= )", r"\\\1", text)


def _escape(text: str) -> str:
    return re.sub(r"(?<!\*)\*(?!\*)", "&#42;", powers(str(inline(text)))).replace("_", "&#95;")


def powers(markup: str) -> str:
    """What `inline` leaves as ^{...}, ^(...), ^-(...), ^x or ^ before a letter that is set already: raised."""
    raised = r"\^(?:\{([^{}]*)\}|\(([^()]*)\)|(-\([^()]*\)|-?\w+|<math>.*?</math>))"
    return re.sub(raised, lambda found: f"<sup>{found[1] or found[2] or found[3]}</sup>", markup)


def _code_cell(line: str) -> str:
    """The first cell of a row: names of the code, set as such."""
    _, first, *others = re.split(r"(?<!\\)\|", line)
    names = ", ".join(f"`{name.strip()}`" if name.strip().isidentifier() else name.strip() for name in first.split(","))
    return "|".join(["", f" {names} ", *others])
