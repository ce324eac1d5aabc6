"""The run directory. Files are the truth: no server, no database.

- `manifest.json`: what this run is
- `results/`: one netCDF file per experiment or shard of a sweep, written to a temporary name and renamed; its checksum
- `trainings/`: checkpoints, removed when a reproduction is finished and kept in a sweep for `select`
- `models/`: one .npz per trained member (with --save-models), arrays under the paper's letters
- `figures/`: SVG, and the numbers of every figure as CSV; `iclab figures` adds PDF and PNG
- `programs.csv`: compiled programs and their times
- `status.json`: the state of a running run
- `claims.json`, `index.html`: the answers, the page
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import xarray as xr

from iclab.errors import InputError, require
from iclab.experiments import Trained
from iclab.runs.checkpoints import Folder, KeptTraining, unseal
from iclab.runs.contents import (
    as_json,
    checked,
    checksum_of,
    digest_in,
    digest_of,
    from_bytes,
    model_files,
    to_bytes,
)
from iclab.runs.manifest import MANIFEST, environment, other_run, read_manifest

LOCK = ".lock"
SEAL = ".seal"
TEMPORARY = re.compile(r"^\..+\.[0-9a-f]{32}$")  # an unfinished file


class Store:
    """One run directory. Opening it changes nothing before it has checked that it is free or belongs to the same run.

    A process that opens a directory locks it until `close`, or until it dies. `on_report` is called with a sentence on
    every damaged file.
    """

    def __init__(self, directory: Path, identity: Mapping[str, Any], plan: Mapping[str, Any] | None = None) -> None:
        self.directory = directory
        self.identity = dict(identity)
        self.fingerprint = digest_of(self.identity)
        self.on_report: Callable[[str], None] = lambda text: None
        self._lock: int | None = None
        try:
            self._check()
            directory.mkdir(parents=True, exist_ok=True)
            self._take()
            self._check()
        except OSError as error:
            raise InputError(f"cannot write to {directory}: {error.strerror or error}.") from error
        try:
            if not (directory / MANIFEST).exists():
                about = {
                    "fingerprint": self.fingerprint,
                    "identity": self.identity,
                    **environment(),
                    "plan": dict(plan or {}),
                }
                self.write_json(MANIFEST, about | {"digest": digest_of(about)})
            self.manifest = read_manifest(directory)
            # The file states other things about the same results.
            if plan and "texts" in plan and self.manifest["plan"] != plan:
                about = {name: value for name, value in self.manifest.items() if name != "digest"} | {"plan": plan}
                self.write_json(MANIFEST, about | {"digest": digest_of(about)})
                self.manifest = read_manifest(directory)
        except InputError:
            self.close()
            raise
        for path in directory.rglob(".*"):
            if TEMPORARY.match(path.name):
                path.unlink(missing_ok=True)

    def _check(self) -> None:
        path = self.directory
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; --out needs a folder.")
        if path.exists() and any(not _own(found.name) for found in path.iterdir()):
            before = read_manifest(path)
            if before["fingerprint"] != self.fingerprint:
                raise InputError(f"{path} {other_run(before['identity'], self.identity)}; choose another --out.")

    def _take(self) -> None:
        """Lock the directory. The lock ends with the process."""
        handle = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _flock(handle)
        except BlockingIOError:
            holder = os.read(handle, 200).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise InputError(
                f"{self.directory} is in use by another iclab ({holder}); wait until it ends, or choose another --out."
            ) from None
        except OSError:  # a file system without locks; every write is atomic, so go on
            pass
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
        self._lock = handle

    def close(self) -> None:
        """Release the directory."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, name: str, content: bytes) -> Path:
        """Write a file atomically: whole or not at all."""
        target = self.directory / name
        inside = target.resolve().is_relative_to(self.directory.resolve())
        require(inside, f"{name!r} cannot be a file of this run: it lies outside {self.directory}.")
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except OSError as error:
            raise InputError(
                f"cannot write {target}: {error.strerror or error}. Finished work is kept. To continue, repeat the "
                f"command with --out {self.directory}."
            ) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return target

    def write_json(self, name: str, content: Any) -> Path:
        """Write JSON. NaN is refused, because other readers cannot parse it."""
        return self.write(name, as_json(content))

    def keep(self, name: str, content: bytes) -> None:
        """Write a file and its checksum."""
        self.write(name, content)
        self.write(f"{name}.sha256", hashlib.sha256(content).hexdigest().encode())

    def kept(self, name: str) -> bytes | None:
        """A file written with `keep`; None if it is missing or damaged. Damage is reported."""
        content = checked(self.directory / name)
        if content is None and checksum_of(self.directory / name).exists():
            self.on_report(f"{self.directory / name} is damaged (its checksum is wrong); the work is done again.")
        return content

    def save_result(self, name: str, data: xr.Dataset, seconds: float) -> None:
        """Save an experiment's dataset, marked as belonging to this run, with a checksum beside it."""
        marked = data.assign_attrs(fingerprint=self.fingerprint, seconds=seconds)
        self.keep(f"results/{name}.nc", to_bytes(marked))

    def load_result(self, name: str) -> xr.Dataset | None:
        """An experiment's dataset if this run has finished it; None if not, or if the file is damaged or foreign."""
        content = self.kept(f"results/{name}.nc")
        if content is None:
            return None
        try:
            loaded = from_bytes(content)
        except (OSError, ValueError, KeyError):  # the checksum is right, but it is not a dataset
            loaded = xr.Dataset()
        if loaded.attrs.get("fingerprint") != self.fingerprint:
            self.on_report(f"{self.directory / 'results' / name}.nc belongs to another run; the work is done again.")
            return None
        return loaded

    def checkpoint(self, name: str) -> KeptTraining:
        """The place of a training of this run."""
        return KeptTraining(self.trainings(), name, self.fingerprint, lambda text: self.on_report(text))

    def trainings(self) -> MutableMapping[str, bytes]:
        """The checkpoints by file name."""
        return Folder(self.directory / "trainings", lambda name, content: self.write(f"trainings/{name}", content))

    def trainings_are_whole(self, names: Iterable[str]) -> bool:
        """Whether these checkpoints exist and belong to this run; the others are reported."""
        files = self.trainings()
        broken = [name for name in names if unseal(files.get(name, b""), self.fingerprint) is None]
        for name in broken:
            self.on_report(
                f"{self.directory}/trainings/{name} is damaged or belongs to another run; the work is done again."
            )
        return not broken

    def forget_trainings(self) -> None:
        """Remove the checkpoints of a finished run."""
        shutil.rmtree(self.directory / "trainings", ignore_errors=True)

    def save_models(self, trained: Trained) -> None:
        """Save every member as models/<experiment>/<setting>-<seed>.npz: plain arrays, so loading needs no pickle."""
        for name, content in model_files(trained):
            self.save_model(name, content)

    def save_model(self, name: str, content: bytes) -> None:
        """Save one member, and beside it a seal: a digest of this run's fingerprint and the content."""
        self.write(f"models/{name}", content)
        self.write(f"models/{name}{SEAL}", digest_in(self.fingerprint, content).encode())

    def models_are_whole(self) -> bool:
        """Whether every saved model is still unchanged; the others are reported."""
        broken = [path for path in (self.directory / "models").rglob(f"*{SEAL}") if not self._sealed(path)]
        for path in broken:
            self.on_report(f"{path.with_suffix('')} is damaged or belongs to another run; the work is done again.")
        return not broken

    def _sealed(self, path: Path) -> bool:
        try:
            content, seal = path.with_suffix("").read_bytes(), path.read_text(errors="replace")
        except OSError:
            return False
        return digest_in(self.fingerprint, content) == seal.strip()


def _flock(handle: int, tries: int = 5) -> None:
    """Take the lock. Try more than once: another process may hold it for a moment to test it."""
    for left in reversed(range(tries)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not left:
                raise
            time.sleep(0.02)


def _own(name: str) -> bool:
    """Whether a file may remain from a run that ended before it wrote its manifest."""
    return name == LOCK or bool(TEMPORARY.match(name))


def read_result(path: Path, fingerprint: str) -> xr.Dataset:
    """Read a result of a run; an `InputError` if the run did not write it."""
    content = checked(path)
    require(content is not None, f"{path} is damaged: its checksum is missing or wrong.")
    try:
        found = from_bytes(content or b"")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read: it is not a result of iclab.") from error
    require(found.attrs.get("fingerprint") == fingerprint, f"{path} belongs to another run.")
    return found
