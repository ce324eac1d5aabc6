"""Workers on other machines: check that they exist, stay alive, and compute the same numbers as this process.

Any executor will do. The workers of a Dask scheduler are checked before they get work, and watched afterwards.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import dataclasses
import logging
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from iclab.authoring import plugged
from iclab.devices import numerics, prepare_jax
from iclab.errors import InputError, in_words, require
from iclab.runs.manifest import source_digest

PATIENCE = 10.0  # seconds to wait for a scheduler to answer
ASKED = 60.0  # seconds for an idle worker to say what it is
ALONE = 30.0  # seconds without a worker, or without the scheduler, before giving up
TICK = 1.0
INSTALLED = "__import__('iclab.runs.cluster') is not None"
GO_ON = "Finished work is kept. To continue, repeat the command with the same --out."


@dataclasses.dataclass(frozen=True)
class Here:
    """What a worker must share with the run: the source and the numerics, which decide its numbers; the run's
    fingerprint; and the texts of the files that models come from.
    """

    source: str
    numerics: Mapping[str, Any]
    fingerprint: str = ""
    models: Mapping[str, str] = dataclasses.field(default_factory=dict)


def here(fingerprint: str = "") -> Here:
    """This process."""
    prepare_jax()
    return Here(source_digest(), numerics(), fingerprint, plugged.texts())


def require_same(run: Here) -> None:
    """Refuse a worker with another iclab or other flags: it would silently compute other numbers. Models that came from
    a file are loaded on it.
    """
    plugged.remember(run.models)
    own = here()
    where = f"the worker on {platform.node()}"
    require(own.source == run.source, f"{where} has a different version of iclab; install the same version there.")
    different = [
        f"{name} {value} instead of {run.numerics.get(name)}"
        for name, value in own.numerics.items()
        if value != run.numerics.get(name)
    ]
    require(not different, f"{where} would compute different numbers: {', '.join(different)}.")


def finished(
    waiting: Iterable[concurrent.futures.Future[Any]], executor: concurrent.futures.Executor
) -> Iterator[concurrent.futures.Future[Any]]:
    """Futures as they finish; an `InputError` if no worker is left for the others."""
    pending = set(waiting)
    while pending:
        done, pending = concurrent.futures.wait(pending, TICK, concurrent.futures.FIRST_COMPLETED)
        yield from done
        if isinstance(executor, Workers):
            executor.check()


def elsewhere(
    function: Callable[[Any, Here], Any],
    pieces: Mapping[str, Any],
    fingerprint: str,
    executor: concurrent.futures.Executor,
) -> Iterator[tuple[str, Any]]:
    """The name and the result of each piece of work, as it finishes."""
    waiting = {executor.submit(function, piece, here(fingerprint)): name for name, piece in pieces.items()}
    try:
        for future in finished(waiting, executor):
            yield waiting[future], answer(future, waiting[future])
    finally:
        for future in waiting:
            future.cancel()


def answer(future: concurrent.futures.Future[Any], what: str) -> Any:
    """A future's result; an `InputError` in one sentence if its worker failed."""
    try:
        return future.result()
    except InputError:
        raise
    except (concurrent.futures.CancelledError, asyncio.CancelledError):
        raise InputError(f"{what} was not computed: the Dask scheduler is gone. {GO_ON}") from None
    except Exception as error:
        dead = " Its workers died one after the other; they may need more memory." if _killed(error) else ""
        raise InputError(f"{what} could not be computed: {in_words(error)}.{dead} {GO_ON}") from error


def _killed(error: BaseException) -> bool:
    return type(error).__name__ in ("KilledWorker", "BrokenProcessPool")


class Workers(concurrent.futures.Executor):
    """The workers of a Dask scheduler. If one dies, another takes over its work, as often as Dask allows (by default
    three times).
    """

    def __init__(self, client: Any, address: str, chosen: list[str] | None) -> None:
        self._client = client
        self._address = address
        self._chosen = chosen
        self._executor = client.get_executor(pure=False, **({"workers": chosen} if chosen else {}))
        self._seen = time.monotonic()

    def submit(self, *arguments: Any, **more: Any) -> concurrent.futures.Future[Any]:
        """Submit work to one of them."""
        found: concurrent.futures.Future[Any] = self._executor.submit(*arguments, **more)
        return found

    def check(self) -> None:
        """Raise when the scheduler or all workers have been gone for too long."""
        try:
            there = _workers(self._client) if self._client.status == "running" else None
        except (OSError, TimeoutError, RuntimeError, asyncio.CancelledError):
            there = None
        if there and any(self._chosen is None or name in self._chosen for name in there):
            self._seen = time.monotonic()
        elif time.monotonic() - self._seen > ALONE:
            who = "the scheduler no longer answers" if there is None else "no workers are left"
            raise InputError(f"{who} at {self._address}. {GO_ON}")


def _workers(client: Any) -> dict[str, Any]:
    return dict(client.scheduler_info(n_workers=-1)["workers"])


def _asked(client: Any, workers: Iterable[str], question: Callable[..., Any], about: Any) -> dict[str, Any]:
    """The workers' answers, or the errors in words. A busy worker does not answer; its work checks it later."""
    futures = {name: client.submit(question, about, workers=[name], pure=False) for name in workers}
    until, answers = time.monotonic() + ASKED, {}
    for name, future in futures.items():
        try:
            answers[name] = future.result(timeout=max(0.0, until - time.monotonic()))
        except TimeoutError:
            continue
        except Exception as error:
            answers[name] = in_words(error)
    return answers


def _fit(client: Any, workers: Iterable[str], say: Callable[[str], None]) -> list[str] | None:
    """The workers that would compute the same numbers; None if all would."""
    names = list(workers)
    installed = _asked(client, names, eval, INSTALLED)  # Dask loses a worker that is given a function it cannot import
    unfit = {name: f"iclab cannot be imported there: {why}" for name, why in installed.items() if why is not True}
    others = [name for name in names if name not in unfit]
    unfit |= {name: why for name, why in _asked(client, others, require_same, here()).items() if why is not None}
    for name, why in unfit.items():
        say(f"skipping worker {name}: {why.rstrip('.')}.")
    first = next(iter(unfit.values()), "").rstrip(".")
    require(len(unfit) < len(names), f"no worker can be used: {first}. Every worker needs this version of iclab.")
    return [name for name in names if name not in unfit] if unfit else None


@contextlib.contextmanager
def connect(
    address: str | None, say: Callable[[str], None] = print
) -> Iterator[tuple[concurrent.futures.Executor | None, int]]:
    """The executor of the Dask scheduler at this address and its number of threads; None and 1 without an address."""
    if address is None:
        yield None, 1
        return
    try:
        from distributed import Client
    except ImportError:
        words = "--cluster needs dask.distributed; install it with `pip install '.[cluster]'` in a checkout of iclab."
        raise InputError(words) from None
    for name in ("asyncio", *logging.root.manager.loggerDict):  # the errors below say what matters, in one sentence
        if name.split(".")[0] in ("asyncio", "distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    try:
        workers = _workers(client)
        require(bool(workers), f"the scheduler at {address} has no workers; start one with: dask worker {address}")
        chosen = _fit(client, workers, say)
        threads = sum(worker["nthreads"] for name, worker in workers.items() if chosen is None or name in chosen)
        yield Workers(client, address, chosen), threads
    finally:
        with contextlib.suppress(Exception):
            client.close(timeout=PATIENCE)
