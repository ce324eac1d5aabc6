"""The part of a user's file that its experiments depend on; it decides whether results may be used again.

A corrected statement, rule or figure changes the judgement of results, not the results. So a run is identified by the
file without the code that only judges and draws: by the settings, the experiments, and everything that they use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

COMPUTE = {"settings", "experiment", "experiments", "check", "lacking", "unit"}
# With these, names may be used without being visible.
DYNAMIC = {"globals", "locals", "vars", "exec", "eval", "__import__", "import_module"}
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def computing_part(text: str) -> str:
    """The source that experiments and settings use, without the file's comments and docstrings; the whole source if it
    may use names in ways that cannot be read from it.

    >>> computing_part("n = 3\\nm = 4\\nsettings = n  # three\\nstatements = [m]")
    'n = 3\\nsettings = n'
    """
    nodes = ast.parse(text).body
    used = {name for node in nodes for name in _used(node)}
    if used & DYNAMIC:
        return text
    defines = [set(_defined(node)) for node in nodes]
    kept = {place for place, names in enumerate(defines) if names & COMPUTE or _acts(nodes[place])}
    waiting = list(kept)
    while waiting:
        needed = set(_used(nodes[waiting.pop()]))
        new = {place for place, names in enumerate(defines) if names & needed} - kept
        kept |= new
        waiting += new
    return "\n".join(ast.unparse(nodes[place]) for place in sorted(kept))


def _used(node: ast.AST) -> Iterator[str]:
    """All names anywhere in a node, including those it defines, which may be changed later."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            yield inner.id
        elif isinstance(inner, ast.Attribute) and inner.attr in DYNAMIC:
            yield inner.attr


def _defined(node: ast.stmt) -> Iterator[str]:
    """The names to which a statement of the file assigns a value."""
    if isinstance(node, DEFINITIONS):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        for alias in node.names:
            yield (alias.asname or alias.name).partition(".")[0]
    else:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                yield inner.id


def _acts(node: ast.stmt) -> bool:
    """Whether a statement does more than define names; if so, it is always kept. So is `import *`."""
    if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
        return True
    if isinstance(node, ast.Expr):
        return not isinstance(node.value, ast.Constant)
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return not all(isinstance(target, ast.Name | ast.Tuple) for target in targets)
    return not isinstance(node, (*DEFINITIONS, ast.Import, ast.ImportFrom))
