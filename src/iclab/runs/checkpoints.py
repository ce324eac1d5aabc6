"""Trainings kept in a run's folder, as arrays in .npz form behind a seal.

A file is replaced as a whole, so a run killed at any moment finds the last checkpoint or the one before. It begins with
a seal, a SHA-256 digest of the run's fingerprint and the content. A file that is damaged or belongs to another run is
reported, and the training starts again.
"""

from __future__ import annotations

import hashlib
import io
import re
import time
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path

import numpy as np

from iclab.training import Checkpoint

EVERY = 20.0  # seconds between checkpoints of one training, at least
COST = 20.0  # and at least this many times what the last one took
DIGEST = hashlib.sha256().digest_size


def file_name(name: str) -> str:
    """A readable and unique file name for this training."""
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return f"{re.sub('[^A-Za-z0-9.-]+', '_', name)[:80]}-{digest}.checkpoint"


def seal(content: bytes, fingerprint: str) -> bytes:
    """The content, preceded by a digest of it and of its run."""
    return hashlib.sha256(fingerprint.encode() + content).digest() + content


def unseal(sealed: bytes, fingerprint: str) -> bytes | None:
    """The inverse of `seal`; None if the content is damaged or belongs to another run.

    >>> unseal(seal(b"weights", "run 1"), "run 1"), unseal(seal(b"weights", "run 1"), "run 2")
    (b'weights', None)
    """
    content = sealed[DIGEST:]
    return content if hashlib.sha256(fingerprint.encode() + content).digest() == sealed[:DIGEST] else None


def pack(leaves: list[np.ndarray], records: dict[str, np.ndarray]) -> bytes:
    """States and records as the bytes of an .npz file."""
    buffer = io.BytesIO()
    arrays = {f"state_{number:04d}": leaf for number, leaf in enumerate(leaves)}
    np.savez(buffer, allow_pickle=False, **arrays, **{f"record_{name}": value for name, value in records.items()})
    return buffer.getvalue()


def unpack(content: bytes) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """The inverse of `pack`."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        states = sorted(name for name in file if name.startswith("state_"))
        records = {name.removeprefix("record_"): file[name] for name in file if name.startswith("record_")}
        return [file[name] for name in states], records


class Folder(MutableMapping[str, bytes]):
    """The files of a folder as a mapping from name to content. `write` writes a file."""

    def __init__(self, directory: Path, write: Callable[[str, bytes], object]) -> None:
        self._directory, self._write = directory, write

    def __getitem__(self, name: str) -> bytes:
        try:
            return (self._directory / name).read_bytes()
        except OSError:  # missing, or not a file
            raise KeyError(name) from None

    def __setitem__(self, name: str, content: bytes) -> None:
        self._write(name, content)

    def __delitem__(self, name: str) -> None:
        (self._directory / name).unlink()

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(path.name for path in self._directory.glob("[!.]*") if path.is_file()))

    def __len__(self) -> int:
        return sum(1 for _ in self)


class KeptTraining(Checkpoint):
    """One training in a mapping from file names to bytes (a folder, or a dictionary on a cluster's worker)."""

    def __init__(
        self,
        files: MutableMapping[str, bytes],
        name: str,
        fingerprint: str,
        report: Callable[[str], None] = lambda text: None,
        *,
        along: bool = True,
    ) -> None:
        self._files = files
        self._name = file_name(name)
        self._fingerprint = fingerprint
        self._report = report
        self._along = along
        self._last = time.perf_counter()
        self._wait = EVERY

    def load(self) -> tuple[list[np.ndarray], dict[str, np.ndarray]] | None:
        """The kept training; None if it is missing, damaged, or belongs to another run."""
        sealed = self._files.get(self._name)
        if sealed is None:
            return None
        content = unseal(sealed, self._fingerprint)
        if content is None:
            self._report(
                f"the checkpoint {self._name} is damaged or belongs to another run; the training starts again."
            )
            return None
        return unpack(content)

    def save(self, leaves: Callable[[], list[np.ndarray]], records: dict[str, np.ndarray], finished: bool) -> None:
        """Save the training from time to time, and when it is finished."""
        began = time.perf_counter()
        if not finished and (not self._along or began - self._last < self._wait):
            return
        self._files[self._name] = seal(pack(leaves(), records), self._fingerprint)
        self._last = time.perf_counter()
        self._wait = max(EVERY, COST * (self._last - began))
