"""Workers elsewhere: asked before they get work, watched while they do it. The scheduler here is a stand-in; real ones
are killed in test_survival.
"""

import asyncio
import concurrent.futures

import pytest

from iclab.errors import InputError
from iclab.runs import cluster


class Scheduler:
    """A client of a scheduler whose workers do what is written behind their names."""

    def __init__(self, workers, status="running"):
        self.workers, self.status, self.given = workers, status, []

    def scheduler_info(self, n_workers):
        return {"workers": {name: {"nthreads": 2} for name in self.workers}}

    def get_executor(self, pure, workers=None):
        return concurrent.futures.ThreadPoolExecutor(1)

    def submit(self, question, about, workers, pure):
        self.given.append((question, *workers))
        future = concurrent.futures.Future()
        does = self.workers[workers[0]]
        if does == "busy":
            return future
        if question is eval:
            if does == "without":
                future.set_exception(ImportError("there is none"))
            else:
                future.set_result(True)
        elif does == "other":
            future.set_exception(InputError("the worker on here has a different version of iclab."))
        else:
            future.set_result(None)
        return future


def test_a_worker_without_iclab_never_gets_a_function_of_it(monkeypatch):
    """Dask loses a worker that cannot import what it is given, and says nothing."""
    monkeypatch.setattr(cluster, "ASKED", 0.1)
    scheduler, said = Scheduler({"a": "fine", "b": "without", "c": "other", "d": "busy"}), []
    assert cluster._fit(scheduler, list(scheduler.workers), said.append) == ["a", "d"]
    assert said == [
        "skipping worker b: iclab cannot be imported there: ImportError: there is none.",
        "skipping worker c: the worker on here has a different version of iclab.",
    ]
    assert [name for question, name in scheduler.given if question is not eval] == ["a", "c", "d"]


def test_all_workers_are_chosen_if_all_are_fit_and_none_is_an_error():
    assert cluster._fit(Scheduler({"a": "fine"}), ["a"], print) is None
    with pytest.raises(
        InputError, match=r"no worker can be used: iclab cannot be imported there: .*there is none\. Every worker needs"
    ):
        cluster._fit(Scheduler({"a": "without"}), ["a"], lambda text: None)


@pytest.mark.parametrize(
    ("scheduler", "chosen", "sentence"),
    [
        (Scheduler({}), None, "no workers are left at tcp://x"),
        (Scheduler({"new": "fine"}), ["old"], "no workers are left at tcp://x"),
        (Scheduler({"a": "fine"}, status="closed"), None, "the scheduler no longer answers at tcp://x"),
    ],
)
def test_nobody_left_is_one_sentence(scheduler, chosen, sentence, monkeypatch):
    monkeypatch.setattr(cluster, "ALONE", 0.1)
    monkeypatch.setattr(cluster, "TICK", 0.05)
    workers = cluster.Workers(scheduler, "tcp://x", chosen)
    with pytest.raises(InputError, match=f"{sentence}. Finished work is kept"):
        list(cluster.finished([concurrent.futures.Future()], workers))


def test_while_one_is_there_work_is_waited_for(monkeypatch):
    monkeypatch.setattr(cluster, "ALONE", 0.0)
    monkeypatch.setattr(cluster, "TICK", 0.01)
    workers = cluster.Workers(Scheduler({"a": "fine"}), "tcp://x", None)
    done = [workers.submit(pow, 2, 3), workers.submit(pow, 2, 4)]
    assert sorted(cluster.answer(future, "it") for future in cluster.finished(done, workers)) == [8, 16]


class KilledWorker(Exception):
    """By its name, as Dask's."""


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (asyncio.CancelledError(), "a piece was not computed: the Dask scheduler is gone"),
        (concurrent.futures.CancelledError(), "a piece was not computed: the Dask scheduler is gone"),
        (KilledWorker("a"), "a piece could not be computed: KilledWorker: a. Its workers died one after the other"),
        (ValueError("odd\nmore"), "a piece could not be computed: ValueError: odd. Finished work is kept"),
        (InputError("steps is 0."), "steps is 0."),
    ],
)
def test_what_goes_wrong_elsewhere_is_one_sentence(error, sentence):
    future = concurrent.futures.Future()
    future.set_exception(error)
    with pytest.raises(InputError) as caught:
        cluster.answer(future, "a piece")
    assert str(caught.value).startswith(sentence) and "\n" not in str(caught.value)
