"""The reference of a module, from its source: signatures with their shapes as written, docstrings as Markdown.

Sphinx fills it in where a page of `docs/api` has `<!-- rendered: module NAME -->` or `<!-- rendered: exports NAME -->`.

Docstrings here are plain text with tables, formulas indented by four spaces and doctests. Stars and underscores in them
are letters of papers (v*_s, W_Q), not emphasis; two stars are bold.
"""

import ast
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx

from iclab.report.mathematics import inline

MARK = re.compile(r"^<!-- rendered: (module|exports) (\S+) -->$", re.MULTILINE)


def module(name: str) -> str:
    """A section for the module: its docstring, then every public class, function and documented name as written."""
    tree = ast.parse(Path(find_spec(name).origin).read_text())
    lines = [f"## {name}", "", f"```{{py:module}} {name}", "```", "", *markdown(ast.get_docstring(tree)), ""]
    for node, following in _definitions(tree):
        if isinstance(node, ast.FunctionDef):
            lines += _function(node, "function", 4)
        elif isinstance(node, ast.ClassDef):
            lines += _class(node)
        elif _text(following):
            lines += _directive("data", ast.unparse(_target(node)), markdown(_text(following)), 4)
    return "\n".join(lines)


def _definitions(tree: ast.Module) -> list[tuple[ast.stmt, ast.stmt | None]]:
    """Public functions, classes and assignments, each with what follows it."""
    kinds = ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign
    pairs = zip(tree.body, [*tree.body[1:], None], strict=True)
    return [
        (node, following) for node, following in pairs if isinstance(node, kinds) and not _name(node).startswith("_")
    ]


def _target(node: ast.Assign | ast.AnnAssign) -> ast.expr:
    return node.targets[0] if isinstance(node, ast.Assign) else node.target


def _name(node: ast.stmt) -> str:
    return node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else ast.unparse(_target(node))


def exports(name: str) -> str:
    """What a package gathers from other modules under `__all__`: signature, docstring and fields, by where it is from.

    Links go to where a name is defined, and the methods of a class stand there.
    """
    tree = ast.parse(Path(find_spec(name).origin).read_text())
    (listed,) = (node for node in tree.body if isinstance(node, ast.Assign) and _name(node) == "__all__")
    exported = set(ast.literal_eval(listed.value))
    lines: list[str] = []
    for node in (node for node in tree.body if isinstance(node, ast.ImportFrom)):
        names = [alias.name for alias in node.names if alias.name in exported]
        if names:
            origin = ast.parse(Path(find_spec(node.module).origin).read_text())
            said = (ast.get_docstring(origin) or "").split("\n\n")[0]
            lines += [f"### From {node.module}", "", f"{{py:mod}}`{node.module}`: {' '.join(markdown(said))}", ""]
            there = {_name(found): (found, following) for found, following in _definitions(origin)}
            for exported_name in names:
                lines += _unindexed(_entry(exported_name, node.module, *there[exported_name]))
    return "\n".join(lines)


def _unindexed(directive: list[str]) -> list[str]:
    """A directive that is no target of links: the name has its own where it is defined."""
    return [directive[0], ":no-index:", *directive[1:]]


def _entry(name: str, origin: str, node: ast.stmt, following: ast.stmt | None) -> list[str]:
    """A name that comes from another module."""
    if isinstance(node, ast.FunctionDef):
        return _function(node, "function", 4)
    if isinstance(node, ast.ClassDef):
        return _class(node, methods=False, origin=origin)
    value = [f"```text\n{name} = {ast.unparse(node.value)}\n```"] if node.value is not None else []
    return _directive("data", name, [*markdown(_text(following)), "", *value], 5)


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


def _class(node: ast.ClassDef, *, methods: bool = True, origin: str = "") -> list[str]:
    """Fields as a table, methods below. Fields marked static decide what is compiled; the others are traced.

    Without methods the entry says where they are.
    """
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
    for part in shown if methods else ():
        body += _function(part, "method", 4)
    if shown and not methods:
        body += [f"Methods: see {{py:class}}`{origin}.{node.name}`.", ""]
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


def _escape(text: str) -> str:
    """Letters as mathematics, a single star as a star."""
    return re.sub(r"(?<!\*)\*(?!\*)", "&#42;", powers(str(inline(text)))).replace("_", "&#95;")


def markdown(text: str | None, plain: Callable[[str], str] = _escape) -> list[str]:
    """A docstring as lines of Markdown: doctests and formulas fenced, all other text as `plain` makes it."""
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
        lines.append(line.removeprefix("    ") if fence == "text" else line if fence else _outside(line, plain))
    return [*lines, "```"] if fence else lines or [""]


def _outside(line: str, plain: Callable[[str], str]) -> str:
    """Outside of code; no line begins a list by accident."""
    parts = re.split(r"(`[^`]*`)", line)
    text = "".join(part if part.startswith("`") else plain(part) for part in parts)
    return re.sub(r"^([+#>]|\d+[.)])(?= )", r"\\\1", text)


def powers(markup: str) -> str:
    """What `inline` leaves as ^{...}, ^(...), ^-(...), ^x or ^ before a letter that is set already: raised."""
    raised = r"\^(?:\{([^{}]*)\}|\(([^()]*)\)|(-\([^()]*\)|-?\w+|<math>.*?</math>))"
    return re.sub(raised, lambda found: f"<sup>{found[1] or found[2] or found[3]}</sup>", markup)


def _code_cell(line: str) -> str:
    """The first cell of a row: names of the code, set as such."""
    _, first, *others = re.split(r"(?<!\\)\|", line)
    names = ", ".join(f"`{name.strip()}`" if name.strip().isidentifier() else name.strip() for name in first.split(","))
    return "|".join(["", f" {names} ", *others])


def fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Replace every mark of a page."""
    makers = {"module": module, "exports": exports}
    source[0] = MARK.sub(lambda mark: makers[mark[1]](mark[2]), source[0])


def setup(app: Sphinx) -> dict:
    """Called by Sphinx."""
    app.connect("source-read", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
