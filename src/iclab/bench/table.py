"""All cases, as a table and as JSON, and a comparison of two such files by ratios.

Seconds depend on the machine and on who else uses it. Three ratios travel better, all measured in the same run: our
rate over that of eager PyTorch, over that of an ensemble under torch.compile, and our arithmetic over what a large
matrix product does. The check compares those.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from iclab.bench.cases import CASES
from iclab.errors import InputError, require

RATIOS = {
    "eager_ratio": "times eager PyTorch",
    "compiled_ratio": "times a compiled PyTorch ensemble",
    "matrix_share": "of the matrix-product rate",
}
ON_CPU = (4, 16)  # sizes of a compiled PyTorch ensemble to try; the faster one counts
SHARES = (64, 16)  # on a GPU: ours divided by these
SLOWER = 0.7  # a ratio below this share of the earlier one is a regression; a busy machine moves it by a few tenths


def _measured(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "iclab.bench.measure", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    require(done.returncode == 0, f"`iclab bench` could not measure {arguments[0]}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def measure(
    names: Sequence[str], seconds: float, members: int | None, peer: bool, say: Callable[[str], None]
) -> dict[str, Any]:
    """All measurements, by case. The machine's own rate is measured before and after; the higher one counts."""
    unknown = [name for name in names if name not in CASES]
    require(not unknown, f"there is no case {', '.join(unknown)}; the cases are {', '.join(CASES)}.")
    has_torch = peer and importlib.util.find_spec("torch") is not None
    machine = _measured("matrix")
    cases: dict[str, Any] = {}
    for name in names or CASES:
        say(f"{name}: {CASES[name].words}")
        extra = [] if members is None else ["--members", str(members)]
        timed = [name, "--seconds", str(seconds)]
        found = _measured(*timed, *extra)
        cases[name] = found | {"words": CASES[name].words, "flop": CASES[name].flop}
        cases[name] |= _peers(timed, machine["device"], CASES[name].on_gpu, say) if has_torch else NO_PEERS
        say(f"  {_rates(cases[name])}")
    again = _measured("matrix")
    machine["flop_per_s"] = max(machine["flop_per_s"], again["flop_per_s"])
    for case in cases.values():
        case["matrix_share"] = case["rate"] * case["flop"] / machine["flop_per_s"]
        for peer_name in ("eager", "compiled"):
            theirs = case[f"{peer_name}_rate"]
            case[f"{peer_name}_ratio"] = None if theirs is None else case["rate"] / theirs
    return {"machine": machine, "cases": cases}


def _rates(case: dict[str, Any]) -> str:
    """What was measured of a case, in a line: not all is lost if a later one is interrupted."""
    peers = {"eager PyTorch": case["eager_rate"], "compiled ensemble": case["compiled_rate"]}
    theirs = [f"{words} {rate:,.0f} ({case['rate'] / rate:.1f} times)" for words, rate in peers.items() if rate]
    return ", ".join([f"{case['rate']:,.0f} model-steps/s", *theirs])


NO_PEERS = {"eager_rate": None, "compiled_rate": None, "compiled_members": None}


def _peers(timed: Sequence[str], device: str, on_gpu: int, say: Callable[[str], None]) -> dict[str, Any]:
    """The rates of both peers; none for a peer that cannot be measured here, so that the others are not lost."""

    def rate(*peer: str) -> float | None:
        try:
            found: float = _measured(*timed, "--peer", *peer)["rate"]
        except InputError as error:
            say(f"  without {' '.join(peer)}: {str(error).strip().splitlines()[-1]}")
            return None
        return found

    sizes = ON_CPU if "cpu" in device.lower() else tuple(on_gpu // share for share in SHARES)
    eager = rate("eager")
    tried = {n: found for n in sizes if (found := rate("compiled", "--members", str(n))) is not None}
    compiled = max(((found, members) for members, found in tried.items()), default=(None, None))
    return {"eager_rate": eager, "compiled_rate": compiled[0], "compiled_members": compiled[1]}


def table(found: dict[str, Any]) -> Table:
    """For a terminal."""
    machine = found["machine"]
    title = (
        f"{machine['device']}, JAX {machine['jax']}; a large float32 product runs at "
        f"{machine['flop_per_s'] / 1e9:,.0f} GFLOP/s"
    )
    shown = Table(title=title, title_justify="left", box=None)
    shown.add_column("model")
    for column in (
        "model steps /s",
        "members",
        "eager PyTorch",
        "ratio",
        "torch.compile",
        "ratio",
        "of the product rate",
        "compile",
        "peak memory",
    ):
        shown.add_column(column, justify="right")
    for name, case in found["cases"].items():
        theirs = []
        for peer_name in ("eager", "compiled"):
            rate, ratio = case[f"{peer_name}_rate"], case[f"{peer_name}_ratio"]
            theirs += ["-", "-"] if rate is None else [f"{rate:,.0f}", f"{ratio:.1f}x"]
        shown.add_row(
            name, f"{case['rate']:,.0f}", f"{case['members']:,}", *theirs, f"{case['matrix_share']:.0%}",
            f"{case['compile_s']:.1f} s", f"{case['peak_bytes'] / 1e9:.1f} GB",
        )  # fmt: skip
    return shown


def read(path: Path) -> dict[str, Any]:
    """Read a file that `iclab bench --out` wrote."""
    require(path.is_file(), f"{path} does not exist; write it with `iclab bench --out {path}`.")
    try:
        found = json.loads(path.read_text())
        for case in found["cases"].values():
            case["eager_ratio"], case["matrix_share"]  # older files have no ensemble
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise InputError(f"{path} is not a file that `iclab bench --out` wrote.") from error
    return dict(found)


def regressions(found: dict[str, Any], earlier: dict[str, Any]) -> list[str]:
    """One sentence for each ratio that fell since an earlier run of `iclab bench`."""
    lines = []
    for name, case in found["cases"].items():
        for key, words in RATIOS.items():
            new, old = case.get(key), earlier["cases"].get(name, {}).get(key)
            if new is not None and old is not None and new < SLOWER * old:
                lines.append(f"{name}: {new:.3g} {words}, {old:.3g} before")
    return lines
