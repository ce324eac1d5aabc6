"""The numbers of a folder, in a form in which two of them can be compared bit by bit."""

import pathlib

import jax
import numpy as np

import iclab
from iclab.runs.contents import checked

HERE = pathlib.Path(__file__).parents[1]
IDEA, SHORTEST = HERE / "idea.py", HERE / "shortest.py"
STATED = """

from iclab.authoring import Part, Statement, below, measured

error = Part("error", measured("experiment", "error"), below(0.9))
statements = [Statement("small", "", "The error is small.", (error,))]
"""


def write_own(folder):
    """tests/idea.py with a statement, for `iclab reproduce`."""
    path = folder / "own.py"
    path.write_text(IDEA.read_text() + STATED)
    return path


def plain(data):
    """A dataset as dimensions, types and bytes; without the seconds that it took."""
    found = data.load()
    variables = {str(name): (one.dims, str(one.dtype), _content(one.values)) for name, one in found.variables.items()}
    return variables, {name: str(value) for name, value in found.attrs.items() if name != "seconds"}


def _content(values):
    return values.tolist() if values.dtype.kind in "OUS" else values.tobytes()


def answers(statements):
    """Statements without the seconds that they took."""
    return [{name: value for name, value in one.items() if name != "seconds"} for one in statements]


def of_run(folder):
    """Results, answers and models of a finished run."""
    run = iclab.open_run(folder)
    models = {path.name: path.read_bytes() for path in folder.rglob("*.npz") if path.is_file()}
    return {name: plain(data) for name, data in run.results.items()}, answers(run.statements), models


def of_sweep(folder):
    """Results and one model of a finished sweep."""
    sweep = iclab.open_sweep(folder, trust=True)
    first = {name: values[0] for name, values in sweep.grid.items()}
    leaves = jax.tree.leaves(sweep.select(seed=1, **first))
    return plain(sweep.data), [np.asarray(leaf).tobytes() for leaf in leaves]


def finished(folder):
    """Results that are there whole, with the moment at which they were written."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.nc") if checked(path) is not None}
