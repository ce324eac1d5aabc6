"""Experiments side by side: answered together, each with the numbers that it has alone."""

import functools
import os
import threading
import time

import jax
import numpy as np
import pytest

import small
from iclab import memory
from iclab.engine import ComputingEngine
from iclab.evaluation import errors
from iclab.experiments import Lab, Recipe
from iclab.losses import hinge
from iclab.optimisation import Training
from iclab.runs import checkpoints
from iclab.together import side_by_side

STEPS = (0, 4, 8, 12)
ASKED = errors(hinge)


class Counting(ComputingEngine):
    """Notes the names of the requests that it answers together."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.seen = []

    def train_all(self, requests, *report):
        self.seen.append([request.name for request in requests])
        return super().train_all(requests, *report)

    def evaluate_all(self, requests, *report):
        self.seen.append([request.name for request in requests])
        return super().evaluate_all(requests, *report)


def experiment(name, engine, step_size=1.0, bench=None):
    lab = bench.asking(engine, lambda what, fraction: None) if bench else Lab("paper", None, range(2), engine=engine)
    recipe = Recipe(small.world(), small.MODEL, Training(step_size=step_size, batch=32))
    trained = lab.train(name, recipe, STEPS)
    return trained.history, lab.evaluate(trained, "test", ASKED, small.world(length=6), prompts=250)


def same(first, second):
    return all(one.identical(other) for one, other in zip(first, second, strict=True))


def test_requests_that_agree_are_answered_as_one_and_have_the_numbers_that_they_have_alone():
    tasks = [functools.partial(experiment, name, step_size=size) for name, size in (("a", 1.0), ("b", 0.5))]
    engine = Counting()
    together = side_by_side(tasks, engine)
    assert engine.seen == [["paper-a", "paper-b"], ["paper-a/test", "paper-b/test"]]
    for task, found in zip(tasks, together, strict=True):
        assert same(found, task(ComputingEngine()))


def test_programs_are_let_go_when_there_are_too_many_and_the_numbers_stay(monkeypatch):
    tasks = [functools.partial(experiment, name, step_size=size) for name, size in (("a", 1.0), ("b", 0.5))]
    before = side_by_side(tasks, ComputingEngine(), at_once=1)
    cleared = []
    monkeypatch.setattr(memory, "crowded", lambda: True)
    monkeypatch.setattr("iclab.together.BETWEEN", 1)
    monkeypatch.setattr(jax, "clear_caches", lambda: cleared.append(True))
    after = side_by_side(tasks, ComputingEngine(), at_once=1)
    assert len(cleared) >= 3 and all(map(same, before, after))


def test_of_untrained_models_nothing_is_kept():
    files = {}
    engine = ComputingEngine(lambda name: checkpoints.KeptTraining(files, name, "run"))
    for untrained in (True, False):
        lab = Lab("paper", None, range(2), engine=engine, untrained=untrained)
        lab.train("a", Recipe(small.world(), small.MODEL, Training(batch=32)), STEPS)
        assert bool(files) != untrained


def test_experiments_of_a_bench_share_a_training():
    trained, engine = [], Counting()
    bench = Lab("paper", None, range(2), on_trained=trained.append)
    first, second = side_by_side([lambda asking: experiment("a", asking, bench=bench)] * 2, engine)
    assert engine.seen[0] == ["paper-a"] and len(trained) == 1 and same(first, second)


def test_a_training_that_is_under_way_is_not_begun_again():
    def later(asking):
        while "paper-a" not in trained_names:
            asking.outside(lambda: time.sleep(0.01) or np.zeros(1), (1,))
        return experiment("a", asking, bench=bench)

    class Slow(Counting):
        def train_all(self, requests, *report):
            trained_names.extend(request.name for request in requests)
            time.sleep(0.3)
            return super().train_all(requests, *report)

    trained, trained_names, engine = [], [], Slow()
    bench = Lab("paper", None, range(2), on_trained=trained.append)
    first, second = side_by_side([lambda asking: experiment("a", asking, bench=bench), later], engine)
    assert trained_names == ["paper-a"] and len(trained) == 1 and same(first, second)


def test_how_far_work_is_is_told_in_the_thread_of_the_experiments():
    said = []
    side_by_side(
        [functools.partial(experiment, "a")], ComputingEngine(), lambda *far: said.append(threading.get_ident())
    )
    assert said and set(said) == {threading.get_ident()}


def test_a_training_is_gone_on_with_in_other_company(monkeypatch):
    monkeypatch.setattr(checkpoints, "EVERY", 0.0)
    monkeypatch.setattr(checkpoints, "COST", 0.0)
    files, saved = {}, []

    class Stops(checkpoints.KeptTraining):
        def save(self, leaves, records, finished):
            super().save(leaves, records, finished)
            saved.append(records["training_loss"].shape[1])
            if len(saved) == 4:  # two records of both
                raise KeyboardInterrupt

    def run(*names, kind=checkpoints.KeptTraining):
        engine = ComputingEngine(lambda name: kind(files, name, "run"))
        return side_by_side([functools.partial(experiment, name) for name in names], engine)

    with pytest.raises(KeyboardInterrupt):
        run("a", "b", kind=Stops)
    found = dict(zip("bc", run("b", "c"), strict=True))  # b has two records, c none: they are no ensemble
    assert all(same(found[name], experiment(name, ComputingEngine())) for name in "bc")
    run("a", kind=Stops)
    assert saved == [1, 1, 2, 2, 3, 4]  # a, too, went on where it was


def test_what_goes_wrong_is_raised_where_it_was_asked_for_and_lets_the_others_go():
    ended = []

    def waits(engine):
        try:
            experiment("a", engine)
        finally:
            ended.append("a")

    def asks_for_nonsense(engine):
        try:
            engine.outside(lambda: 1 / 0, ())
        except ZeroDivisionError as error:
            raise ValueError("in the experiment") from error

    with pytest.raises(ValueError, match="in the experiment"):
        side_by_side([asks_for_nonsense, waits], ComputingEngine())
    assert ended == ["a"]


def test_an_experiment_is_charged_for_its_own_work_and_not_for_that_of_others():
    def task(engine):
        engine.outside(lambda: time.sleep(0.3) or np.zeros(1), (1,))
        return engine.seconds()

    spent = side_by_side([task] * 3, ComputingEngine())
    assert all(0.3 <= seconds < 0.55 for seconds in spent)  # waiting for the others would make it 0.6 and 0.9


def test_leaving_is_possible_again_when_experiments_of_files_end_one_before_the_other():
    from iclab.authoring.guarded import guarded

    leave = os._exit

    def one(engine, asks):
        with guarded("file.py"):
            for _ in range(asks):
                engine.outside(lambda: np.zeros(1), (1,))
            assert os._exit is not leave

    side_by_side([lambda engine: one(engine, 1), lambda engine: one(engine, 3)], ComputingEngine())
    assert os._exit is leave
