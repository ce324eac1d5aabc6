"""Does a smaller d give the numbers of a larger one? The three trainings of vector-arithmetic, run by run.

    iclab reproduce vector-arithmetic --set dimension=300 --seeds 2 --out runs/300
    python benchmarks/vector_arithmetic_sizes.py "d = 150=runs/quick" "d = 300=runs/300"

Reads `results/vector-arithmetic/{qa,icl,qa-icl}.nc` of every run and prints a table of means over seeds, at the epoch
at which validation error is lowest and at epoch 2000.
"""

from __future__ import annotations

import sys
from pathlib import Path

import xarray as xr

LAST = 2000  # epochs; the paper profile trains longer on P_T and P_QA^T
TRAININGS = {"qa": "P_QA", "icl": "P_T", "qa-icl": "P_QA^T"}
ROWS = {
    "0-1 error, ICL": "icl_error", "0-1 error, QA-ICL": "qa-icl_error", "cos(h_0, a), ICL": "icl_cos_task",
    "cos(h_0, other a), ICL": "icl_cos_other", "cos(h_0, b), ICL": "icl_cos_low", "aᵀW_V a": "value_a",
    "largest bᵀW_V b": "value_b", "largest other projection": "value_cross", "(W_Q a)ᵀ(W_K a)": "attention_a",
}  # fmt: skip


def cell(history: xr.Dataset, variable: str) -> str:
    """Mean over seeds where each was stopped, and at the last epoch that all runs have."""
    data = history[variable]
    best = data.where(data["step"] == history["best_step"]).max("step")
    return f"{float(best.mean()):.2g} → {float(data.sel(step=LAST).mean()):.2g}"


def table(runs: dict[str, Path]) -> str:
    """A row for every training and quantity, a column for every run."""
    lines = ["| trained on | best t → epoch 2000 | " + " | ".join(runs) + " |", "|---|---|" + "---|" * len(runs)]
    for training, on in TRAININGS.items():
        places = [folder / "results" / "vector-arithmetic" / f"{training}.nc" for folder in runs.values()]
        found = [xr.open_dataset(place) if place.exists() else None for place in places]
        for words, variable in ROWS.items():
            cells = ["not run" if history is None else cell(history, variable) for history in found]
            lines.append(f"| {on} | {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    named = (argument.rpartition("=") for argument in sys.argv[1:])
    print(table({name.strip(): Path(folder) for name, _, folder in named}))
