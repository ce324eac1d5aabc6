"""Recorded specification curves: what `iclab robust` found of built-in statements.

    python benchmarks/robustness.py DIR ...    condense these curves into the package, which shows them on every page
    python benchmarks/robustness.py            write the table of shares into robustness.md, beside this file

A statement that is asked again replaces its record.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import iclab
from iclab.papers import PAPERS
from iclab.runs.manifest import read_manifest
from iclab.runs.robust_results import short

HERE = Path(__file__).parent
RECORD = HERE.parent / "src" / "iclab" / "data" / "robustness.json"
MOST = 10  # most fragile and most robust statements that are named
HEAD = """# How robust the answers are

`iclab robust` at so many points of what the papers do not state; `python benchmarks/robustness.py` writes this page.
The share is that of the points at which a statement holds, with Wilson's 95 % interval. How points are drawn, and what
"decides" means: [how answers are decided](../docs/verdicts.md#how-robust-is-an-answer).
"""


def record(directory: Path) -> None:
    """Put the statements of a curve among the recorded ones."""
    found = iclab.open_robust(directory)
    manifest = read_manifest(directory)
    identity, machine = manifest["identity"], ", ".join(manifest["devices"])
    made = {"profile": identity["profile"], "seeds": identity["seeds"], "device": machine}
    known = {one["id"]: one for one in json.loads(RECORD.read_text())["statements"]}
    for one in found.statements:
        if one.id.partition("/")[0] in PAPERS:
            known[one.id] = short(one.summary()) | made | {"own": one.own, "without": list(one.without)}
    lines = ",\n".join(json.dumps(known[name], ensure_ascii=False) for name in sorted(known))
    RECORD.write_text(f'{{"statements": [\n{lines}\n]}}\n')


def table() -> str:
    """All recorded statements, the least robust first, and the extremes by name."""
    found = sorted(json.loads(RECORD.read_text())["statements"], key=lambda one: (one["share"], one["high"]))
    lines = [HEAD, "| statement | holds in | points × seeds | decided by | smallest change of our own choice |"]
    lines.append("|---|---|---|---|---|")
    for one in found:
        share = f"{one['share']:.0%} [{100 * one['low']:.0f}, {100 * one['high']:.0f}]"
        size = f"{one['points']} × {one['seeds']}, {one['profile']}"
        decided = ", ".join(one["decided_by"]) or "–"
        lines.append(f"| `{one['id']}` | {share} | {size} | {decided} | {one['smallest_change'] or '–'} |")
    fragile, robust = found[:MOST], found[::-1][:MOST]
    if len(found) > 2 * MOST:
        lines += ["", f"Most fragile: {', '.join(one['id'] for one in fragile)}."]
        lines += ["", f"Most robust: {', '.join(one['id'] for one in robust)}."]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        record(Path(name))
    (HERE / "robustness.md").write_text(table())
