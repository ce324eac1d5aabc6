"""Workers on other machines: an existing Dask scheduler as an executor."""

from __future__ import annotations

import concurrent.futures
import contextlib
from collections.abc import Iterator

from iclab.errors import InputError, require

PATIENCE = "10s"


@contextlib.contextmanager
def connect(address: str | None) -> Iterator[tuple[concurrent.futures.Executor | None, int]]:
    """The executor of the Dask scheduler at this address and its number of workers; None and 1 without an address.

    A worker that dies has its work done again by another: Dask's own doing.
    """
    if address is None:
        yield None, 1
        return
    try:
        from distributed import Client
    except ImportError:
        raise InputError("--cluster needs dask.distributed; install it with: pip install 'iclab[cluster]'") from None
    try:
        client = Client(address, timeout=PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        workers = client.scheduler_info(n_workers=-1)["workers"]
        require(bool(workers), f"the scheduler at {address} has no workers; start some with: dask worker {address}")
        yield client.get_executor(pure=False), sum(worker["nthreads"] for worker in workers.values())
