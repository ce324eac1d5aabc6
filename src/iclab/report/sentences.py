"""The answers to a paper's statements in one sentence.

Theorems, propositions, corollaries, figures and tables are named; lemmas and remarks are counted. If a statement holds
only in some readings, the sentence says what these have in common, provided two phrases can say it. A reading's name is
a list of facets, "18tasks,kappa=10"; a paper may name them in words in `facets`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from iclab.report.formats import listed
from iclab.tallies import Answer

Entry = Mapping[str, Any]
KINDS = ("Theorem", "Proposition", "Corollary", "Figure", "Table")
PLURALS = {"Corollary": "Corollaries"}
NUMBERED = re.compile(rf"^({'|'.join(KINDS)}) ([\w.]+)(?:\(([A-Za-z])\)|(, \w+))?$")
STATED = "the settings as stated"
MOST_PHRASES = 2
SOME = "hold{} in some readings only"
FEW = 2  # facets that a sentence names
LONGEST = 60  # characters of a part's name in a sentence


def sentence(entries: Sequence[Entry], facets: Mapping[str, str]) -> str:
    """The result for a paper.

    >>> held = {"source": "Theorem 1", "answer": "holds", "readings": []}
    >>> sentence([held, held | {"source": "Theorem 3"}, held | {"source": "Lemma 2"}], {})
    'Theorems 1 and 3 hold; so does one other statement.'
    """
    if all(entry["answer"] == Answer.not_asked for entry in entries):
        return "Numbers only: this profile answers nothing."
    main = [entry for entry in entries if NUMBERED.match(entry["source"])]
    clauses: dict[str, list[Entry]] = {}
    for entry in sorted(main, key=_importance):
        clauses.setdefault(_clause(entry, facets), []).append(entry)
    drawn = [clause for clause, group in clauses.items() if _conditional(group)]
    if len(drawn) > 1:  # figures with different conditions are named together, without the conditions
        clauses[SOME] = [*clauses.pop(SOME, []), *(entry for clause in drawn for entry in clauses.pop(clause, []))]
    told = [_told(clause, group, main) for clause, group in clauses.items()]
    others = [entry for entry in entries if entry not in main]
    text = "; ".join([*told, *_others(others, bool(told))])
    return f"{text[:1].upper()}{text[1:]}."


def _conditional(group: Sequence[Entry]) -> bool:
    """Figures and tables only, which hold if ..."""
    drawn = all(entry["source"].startswith(("Figure", "Table")) for entry in group)
    return drawn and group[0]["answer"] == Answer.holds_if


ORDER = {str(answer): place for place, answer in enumerate(Answer)}


def _importance(entry: Entry) -> tuple[int, int]:
    found = NUMBERED.match(entry["source"])
    return ORDER[str(entry["answer"])], KINDS.index(found[1]) if found else len(KINDS)


def _clause(entry: Entry, facets: Mapping[str, str]) -> str:
    """The clause about a statement, with "{}" for the ending of the verb."""
    answer = entry["answer"]
    if answer == Answer.holds_if:
        return condition(entry, facets, FEW) or SOME
    if answer == Answer.in_part:
        missing = _missing(entry)
        if entry["source"].startswith("Theorem") and len(missing) == 1 and len(missing[0]) < LONGEST:
            return f"hold{{}} but for “{missing[0]}”"
        return "hold{} in part"
    return {
        Answer.holds: "hold{}",
        Answer.fails: "fail{}",
        Answer.fails_in_scaling: "fail{} in scaling",
        Answer.open: "stay{} open",
    }.get(Answer(answer), "were not tested")


def _told(clause: str, group: Sequence[Entry], main: Sequence[Entry]) -> str:
    said = names([one["source"] for one in group], [one["source"] for one in main])
    several = len(group) > 1 and not re.fullmatch(r"[A-Z]\w+ [\w.]+", said)  # all panels of one figure are one figure
    return f"{said} {clause.format('' if several else 's')}"


def _others(others: Sequence[Entry], after: bool) -> list[str]:
    held = sum(entry["answer"] == Answer.holds for entry in others)
    if not others:
        return []
    if held == len(others):
        count = f"{'one' if held == 1 else held} other statement{'s' * (held > 1)}"
        return [f"so do{'es' * (held == 1)} {count}" if after else f"{count} hold{'s' * (held == 1)}"]
    what = f"of {len(others)} lemmas, remarks and equations" if len(others) > 1 else "the one other statement"
    return [f"{what} {held or 'none'} hold{'s' * (held < 2)} throughout" if len(others) > 1 else f"{what} does not"]


def condition(entry: Entry, facets: Mapping[str, str], most: int = 2 * MOST_PHRASES) -> str:
    """What the readings in which a statement holds have in common: "need{} ...", "hold{} except with ..." or "hold{},
    open with ..."; empty if two phrases with at most `most` facets cannot say it.
    """
    readings = [
        (frozenset(filter(None, one["name"].split(","))), one["answer"] == "holds") for one in entry["readings"]
    ]
    said = []
    rest = {one["answer"] for one in entry["readings"]} - {"holds"}
    others = "hold{}, open with {what}" if rest == {"open"} else "hold{} except with {what}"
    for wanted, words in ((True, "need{} {what}"), (False, others)):
        inside = [names for names, holds in readings if holds is wanted]
        terms = _cover(inside, [names for names, holds in readings if holds is not wanted])
        length = sum(max(1, len(term)) for term in terms or ())
        if terms is not None and length <= most:
            said.append((length, words.replace("{what}", " or ".join(_phrase(term, facets) for term in terms))))
    return min(said, key=lambda one: one[0])[1] if said else ""


def _cover(inside: Sequence[frozenset[str]], outside: Sequence[frozenset[str]]) -> list[frozenset[str]] | None:
    """A few sets of facets such that each reading inside has one of them and none outside does."""
    facets = sorted(set().union(*inside))
    single = [frozenset((facet,)) for facet in facets]
    double = [frozenset(pair) for pair in itertools.combinations(facets, 2)]
    alone = [frozenset[str]()] if frozenset() in inside else []  # the reading without a name, which has no facets
    usable = [t for t in (*single, *double) if not any(t <= names for names in outside)]
    for count in range(1, MOST_PHRASES + 1):
        for terms in itertools.combinations([*alone, *usable], count):
            if all(any(_has(names, term) for term in terms) for names in inside):
                return list(terms)
    return None


def _has(names: frozenset[str], term: frozenset[str]) -> bool:
    return names == term if not term else term <= names


def _phrase(term: frozenset[str], facets: Mapping[str, str]) -> str:
    return " and ".join(facets.get(facet, facet) for facet in sorted(term)) or STATED


def _missing(entry: Entry) -> list[str]:
    """The parts that do not hold, in the reading in which most do."""
    found = [[part["name"] for part in one["parts"] if part["outcome"] != "holds"] for one in entry["readings"]]
    return min(found, key=len, default=[])


def briefly(entry: Entry, facets: Mapping[str, str]) -> str:
    """The line below a statement's answer in a table: the condition, the share of parts, or the reason."""
    answer, readings = entry["answer"], entry["readings"]
    if answer == Answer.holds_if:
        held = sum(one["answer"] == "holds" for one in readings)
        said = (
            condition(entry, facets)
            .format("s")
            .removeprefix("needs ")
            .replace("holds except", "not")
            .removeprefix("holds, ")
        )
        return said or f"in {held} of {len(readings)} readings"
    if answer == Answer.in_part:
        best = max(
            readings, key=lambda one: sum(part["outcome"] == "holds" for part in one["parts"]) / len(one["parts"])
        )
        held = sum(part["outcome"] == "holds" for part in best["parts"])
        return f"{held} of {len(best['parts'])} parts" + (" in the best reading" if len(readings) > 1 else "")
    if answer == Answer.holds and len(readings) > 1:
        return f"in all {len(readings)} readings"
    if answer == Answer.open:
        reason = re.sub(r"^.*?open: ", "", entry["words"]).split(" · ")[0]
        return reason if len(reason) <= 2 * LONGEST else f"{reason[: 2 * LONGEST].rsplit(' ', 1)[0]} …"
    return ""


def names(sources: Sequence[str], among: Sequence[str]) -> str:
    """Names in the paper, shortened: panels of one figure together, only the figure if all its panels are listed.

    >>> every = [f"Figure 2({letter})" for letter in "ABCD"] + ["Figure 3(A)", "Theorem 1"]
    >>> names(["Theorem 1", "Figure 2(B)", "Figure 2(C)", "Figure 2(D)", "Figure 3(A)"], every)
    'Theorem 1 and Figures 2(B)–(D) and 3'
    """
    kinds: dict[str, dict[str, list[str]]] = {}
    for source in sources:
        found = NUMBERED.match(source)
        kind, label, panel = (found[1], found[2], found[3] or found[4] or "") if found else (source, "", "")
        kinds.setdefault(kind, {}).setdefault(label, []).append(panel)
    told = []
    for kind, labels in kinds.items():
        shown = [_panels(label, panels, f"{kind} {label}", among) for label, panels in labels.items()]
        told.append(
            f"{PLURALS.get(kind, f'{kind}s') if len(shown) > 1 or ' and (' in shown[0] else kind} {listed(shown)}"
        )
    return listed(told).strip()


def _panels(label: str, panels: Sequence[str], name: str, among: Sequence[str]) -> str:
    there = [source for source in among if source == name or source.startswith(f"{name}(")]
    there += [source for source in among if source.startswith(f"{name}, ")]
    letters = sorted(filter(None, panels))
    if not letters or len(letters) == len(there):
        return label
    if letters[0].startswith(","):
        return f"{label}{letters[0].replace(',', '')}"
    if len(letters) > 2 and "".join(letters).upper() in "ABCDEFGHIJKLMNOPQRSTUVWXYZ":
        return f"{label}({letters[0]})–({letters[-1]})"
    return f"{label}({letters[0]})" + "".join(f" and ({letter})" for letter in letters[1:])
