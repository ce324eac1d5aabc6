"""Figure 3 of nonlinear-icl put to GPT-2, judged on results made by hand: what its rules call holding and what not."""

import dataclasses

import numpy as np
import pytest
import xarray as xr

from iclab.entries import judge
from iclab.library import select
from iclab.papers.nonlinear_icl.experiments import FRACTIONS, LENGTHS, SUMS

SEEDS = 5
JITTER = xr.DataArray(1 + 0.01 * np.arange(SEEDS), dims="seed", coords={"seed": range(SEEDS)})  # seeds differ a little


def grid(values, **coordinates):
    labels = {name: list(own) for name, own in coordinates.items()}
    return xr.DataArray(np.asarray(values, float), dims=tuple(coordinates), coords=labels)


def answers(statement, experiment, data):
    """The answer of either reading on GPT-2, where both trainings have these results; by its rules alone, also where the
    paper's module says that a size of ours decides.
    """
    both = xr.concat([data] * 2, xr.Variable("setting", ["fixed", "varied"]))
    names = ("gpt2", "gpt2-varied")
    asked = [select([f"nonlinear-icl/{statement}[{name}]"])[0] for name in names]
    settled = [
        dataclasses.replace(one, parts=tuple(dataclasses.replace(part, unsettled="") for part in one.parts))
        for one in asked
    ]
    return [judge(one, {experiment: both})["answer"] for one in settled]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (lambda total: np.where(total >= 1, 0.005, 0.05), "holds"),
        (lambda total: np.full(len(total), 0.15), "fails"),
        (lambda total: np.full(len(total), 0.001), "in part"),  # no deviation below 1 either
        (lambda total: np.where(total >= 1, 0.05, 0.001), "fails"),
    ],
)
def test_figure_3a_wants_small_errors_from_one_on_and_larger_ones_below(error, answer):
    values = grid(error(np.array(SUMS)), total=SUMS) * JITTER
    assert answers("fig3a", "gpt2-sums", xr.Dataset({"error": values, "hinge": 20 * values})) == [answer] * 2


@pytest.mark.parametrize(
    ("needed", "answer"),
    [((16, 12, 8, 4), "holds"), ((8, 8, 8, 8), "fails"), ((4, 8, 12, 16), "fails"), ((99, 99, 99, 99), "open")],
)
def test_figure_3b_wants_shorter_contexts_for_larger_fractions_and_is_open_where_none_was_enough(needed, answer):
    lengths = [length for length in LENGTHS if length <= 20]
    error = np.where(np.array(lengths) >= np.array(needed)[:, None], 0.01, 0.2)
    one = grid(error, fraction=FRACTIONS, length=lengths) * JITTER
    data = xr.concat([one] * 2, xr.Variable("domain", ["in", "out"]))
    assert answers("fig3b", "gpt2-lengths", xr.Dataset({"error": data, "hinge": data})) == [answer] * 2
