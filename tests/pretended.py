"""`iclab` with most numbers made up: every request is traced and answered in its shapes, few are compiled and computed.

Compiling a run of all papers takes a quarter of an hour even at the smallest sizes. Everything else of such a run is
real here: what experiments ask for, what they make of the answers, statements, figures, the page, the files.
"""

import sys
import zlib

import jax
import numpy as np

from iclab import cli
from iclab.engine import ComputingEngine
from iclab.planning import zeros_of_evaluation, zeros_of_training

COMPUTED = ("feature-selection-standard", "nonlinear-icl-standard", "explorer")  # what tests read the numbers of
real = {name: getattr(ComputingEngine, name) for name in ("train_all", "evaluate_all", "programs")}


def is_computed(name):
    return any(part in name for part in COMPUTED)


def made_up(name, zeros):
    """Numbers between 0 and 1 in the place of the zeros, the same ones for the same name."""
    numbers = np.random.default_rng(zlib.crc32(name.encode()))
    return jax.tree.map(
        lambda leaf: numbers.uniform(0.1, 0.9, leaf.shape).astype(leaf.dtype) if leaf.dtype.kind == "f" else leaf, zeros
    )


def train_all(engine, requests, *report):
    return [_train(engine, request, *report) for request in requests]


def _train(engine, request, *report):
    if is_computed(request.name):
        return real["train_all"](engine, [request], *report)[0]
    states, records = zeros_of_training(request)
    return states, made_up(request.name, records)


def evaluate_all(engine, requests, *report):
    return [_evaluate(engine, request, *report) for request in requests]


def _evaluate(engine, request, *report):
    if is_computed(request.name):
        return real["evaluate_all"](engine, [request], *report)[0]
    return made_up(request.name, zeros_of_evaluation(request))


def programs(engine, requests):
    return real["programs"](engine, requests) if all(is_computed(request.name) for request in requests) else {}


def outside(engine, compute, shape):
    return made_up(str(shape), np.zeros(shape))


if __name__ == "__main__":
    sys.argv[0] = "iclab"
    for pretended in (train_all, evaluate_all, programs, outside):
        setattr(ComputingEngine, pretended.__name__, pretended)
    cli.main()
