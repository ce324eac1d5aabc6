"""Recorded answers of every paper: the quick profile beside the paper profile on a GPU.

    python benchmarks/recorded.py RUN ...    condense what runs answered: quick ones into quick/ beside this file,
                                             full-size ones into the package, which ships them
    python benchmarks/recorded.py            write both side by side into answers.md

A quick answer should be the answer at the paper's size. A part that the quick profile decides must be decided alike by
the recorded full-size run, as far as there is one; a test holds that, and that the records belong to the statements as
they are now.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from iclab.records import Record, condensed, folder

HERE = Path(__file__).parent
FOLDERS = {"quick": HERE / "quick", "paper": folder()}


def record(run: Path) -> list[Path]:
    """Condense a run, one file per paper."""
    statements = json.loads((run / "claims.json").read_text())["statements"]
    written = []
    for paper in dict.fromkeys(statement["paper"] for statement in statements):
        own = [statement for statement in statements if statement["paper"] == paper]
        path = FOLDERS[own[0]["profile"]] / f"{paper}.json"
        path.parent.mkdir(exist_ok=True)
        lines = ",\n".join(json.dumps(condensed(statement), ensure_ascii=False) for statement in own)
        path.write_text(f"[\n{lines}\n]\n")
        written.append(path)
    return written


def recorded(paper: str) -> dict[str, dict[str, Record]]:
    """The records of a paper, by profile and statement; none where nothing was run."""
    found = {profile: place / f"{paper}.json" for profile, place in FOLDERS.items()}
    return {
        profile: {entry["id"]: entry for entry in json.loads(path.read_text())} if path.exists() else {}
        for profile, path in found.items()
    }


def papers() -> list[str]:
    """The papers of which something is recorded."""
    return sorted({path.stem for place in FOLDERS.values() for path in place.glob("*.json")})


def pairs(quick: Mapping[str, Record], full: Mapping[str, Record]) -> Iterator[tuple[str, Record, Record]]:
    """Every part with its name that both records have."""
    for name, entry in ((name, entry) for name, entry in quick.items() if name in full):
        for one, other in zip(entry["readings"], full[name]["readings"], strict=True):
            where = f"{name}[{one['name']}]" if one["name"] else name
            for part, large in zip(one["parts"], other["parts"], strict=True):
                yield f"{where}, {part['name']}", part, large


def disagreements(quick: Mapping[str, Record], full: Mapping[str, Record]) -> list[str]:
    """Every part that the quick profile decides and the full size does not decide alike, in words."""
    return [
        f"{name}: {part['words']}; at full size {large['words']}"
        for name, part, large in pairs(quick, full)
        if part["outcome"] not in ("open", large["outcome"])
    ]


def left_open(quick: Mapping[str, Record], full: Mapping[str, Record]) -> list[str]:
    """Every part that only the full size decides, with what keeps the quick profile from it."""
    return [
        f"{name}: {part['words']}; at full size {large['words']}"
        for name, part, large in pairs(quick, full)
        if part["outcome"] == "open" != large["outcome"]
    ]


def told(entry: Mapping[str, Any]) -> str:
    """An answer, with the readings or parts that it names, without what the others say."""
    return str(entry["words"]).split(" · ")[0] if entry["answer"] in ("holds", "holds if", "in part") else _short(entry)


def _short(entry: Mapping[str, Any], limit: int = 200) -> str:
    words = entry["words"] if entry["words"].startswith(entry["answer"]) else f"{entry['answer']}: {entry['words']}"
    return words if len(words) <= limit else f"{words[:limit].rsplit(' ', 1)[0]} ..."


def rows(paper: str) -> list[tuple[str, ...]]:
    """Name, source, quick answer and answer at full size of every statement of a paper."""
    both = recorded(paper)
    found = []
    for name, entry in {**both["quick"], **both["paper"]}.items():
        answers = (told(both[profile][name]) if name in both[profile] else "not run" for profile in FOLDERS)
        found.append((name.partition("/")[2], entry["source"], *answers))
    return found


def table(paper: str) -> list[str]:
    """The same as Markdown."""
    lines = ["| statement | in the paper | quick | full size |", "|---|---|---|---|"]
    return lines + [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows(paper)]


def side_by_side() -> str:
    """All papers."""
    lines = ["# Answers of the quick profile and at full size", "", (__doc__ or "").split("\n\n")[-1].strip(), ""]
    for paper in papers():
        lines += [f"## {paper}", "", *table(paper), ""]
        both = recorded(paper)
        for heading, found in (("Decided differently", disagreements), ("Left open by the quick profile", left_open)):
            told_apart = found(both["quick"], both["paper"])
            if told_apart:
                lines += [f"{heading}:", "", *(f"- {line}" for line in told_apart), ""]
    return "\n".join(lines)


if __name__ == "__main__":
    for run in sys.argv[1:]:
        print(*record(Path(run)), sep="\n")
    if len(sys.argv) == 1:
        (HERE / "answers.md").write_text(side_by_side())
