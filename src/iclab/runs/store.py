"""The run directory. Files are the truth: no server, no database.

- `manifest.json`: what this run is
- `results/`: one netCDF file per experiment or shard of a sweep, written to a temporary name and renamed; its checksum
- `trainings/`: checkpoints; removed when a reproduction is finished, kept in a sweep for `select`
- `models/`: one .npz per trained member (with --save-models), arrays under the paper's letters
- `figures/`: SVG, and the numbers of every figure as CSV; PDF and PNG by `iclab figures`
- `programs.csv`: what was compiled and run, and how long that took
- `status.json`: what a run that is still going is doing
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
TEMPORARY = re.compile(r"^\..+\.[0-9a-f]{32}$")  # a file that was being written


class Store:
    """One run directory. Opening it checks that it is free or belongs to the same run; nothing is touched before.

    A process that opens a directory has it for itself until `close` (or until it dies). `on_report` is told, in words,
    what was found damaged.
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
            if plan and "texts" in plan and self.manifest["plan"] != plan:  # a file says other things about its results
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
        """Lock the directory. The lock goes with the process, however it ends."""
        handle = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _flock(handle)
        except BlockingIOError:
            holder = os.read(handle, 200).decode(errors="replace").strip() or "unknown"
            os.close(handle)
            raise InputError(
                f"{self.directory} is in use by another iclab ({holder}); wait for it, or choose another --out."
            ) from None
        except OSError:  # a file system without locks: go on, as every write is whole or not at all
            pass
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
        self._lock = handle

    def close(self) -> None:
        """Give the directory free."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def write(self, name: str, content: bytes) -> Path:
        """Write a file so that it is there whole or not at all."""
        target = self.directory / name
        inside = target.resolve().is_relative_to(self.directory.resolve())
        require(inside, f"{name!r} is no name for a file of a run: it lies outside of {self.directory}.")
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
                f"cannot write {target}: {error.strerror or error}. What was finished before is kept; the same "
                "command with "
                f"--out {self.directory} goes on from there."
            ) from error
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
        return target

    def write_json(self, name: str, content: Any) -> Path:
        """Write JSON; NaN is refused rather than written as something other readers cannot parse."""
        return self.write(name, as_json(content))

    def keep(self, name: str, content: bytes) -> None:
        """Write a file and its checksum."""
        self.write(name, content)
        self.write(f"{name}.sha256", hashlib.sha256(content).hexdigest().encode())

    def kept(self, name: str) -> bytes | None:
        """A file written with `keep`; None if it is not there whole. What is damaged is reported."""
        content = checked(self.directory / name)
        if content is None and checksum_of(self.directory / name).exists():
            self.on_report(
                f"{self.directory / name} is damaged (its checksum is another); it is not used, the work is done again."
            )
        return content

    def save_result(self, name: str, data: xr.Dataset, seconds: float) -> None:
        """Keep an experiment's dataset, marked as belonging to this run, with a checksum beside it."""
        marked = data.assign_attrs(fingerprint=self.fingerprint, seconds=seconds)
        self.keep(f"results/{name}.nc", to_bytes(marked))

    def load_result(self, name: str) -> xr.Dataset | None:
        """An experiment's dataset if this run has finished it; None if not, or if the file is damaged or foreign."""
        content = self.kept(f"results/{name}.nc")
        if content is None:
            return None
        try:
            loaded = from_bytes(content)
        except (OSError, ValueError, KeyError):  # a right checksum of something else
            loaded = xr.Dataset()
        if loaded.attrs.get("fingerprint") != self.fingerprint:
            self.on_report(
                f"{self.directory / 'results' / name}.nc is of another run; it is not used, the work is done again."
            )
            return None
        return loaded

    def checkpoint(self, name: str) -> KeptTraining:
        """The place of a training of this run."""
        return KeptTraining(self.trainings(), name, self.fingerprint, lambda text: self.on_report(text))

    def trainings(self) -> MutableMapping[str, bytes]:
        """The checkpoints by file name."""
        return Folder(self.directory / "trainings", lambda name, content: self.write(f"trainings/{name}", content))

    def trainings_are_whole(self, names: Iterable[str]) -> bool:
        """Whether these checkpoints are there and of this run; what is not is reported."""
        files = self.trainings()
        broken = [name for name in names if unseal(files.get(name, b""), self.fingerprint) is None]
        for name in broken:
            self.on_report(f"{self.directory}/trainings/{name} is damaged or of another run; its work is done again.")
        return not broken

    def forget_trainings(self) -> None:
        """Remove the checkpoints of a finished run."""
        shutil.rmtree(self.directory / "trainings", ignore_errors=True)

    def save_models(self, trained: Trained) -> None:
        """Every member as models/<experiment>/<setting>-<seed>.npz; plain arrays, so that loading never needs
        pickle.
        """
        for name, content in model_files(trained):
            self.save_model(name, content)

    def save_model(self, name: str, content: bytes) -> None:
        """One member, and a seal beside it: a digest of this run's fingerprint and of the content."""
        self.write(f"models/{name}", content)
        self.write(f"models/{name}{SEAL}", digest_in(self.fingerprint, content).encode())

    def models_are_whole(self) -> bool:
        """Whether every model that was kept is still there as it was; what is not is reported."""
        broken = [path for path in (self.directory / "models").rglob(f"*{SEAL}") if not self._sealed(path)]
        for path in broken:
            self.on_report(f"{path.with_suffix('')} is damaged or of another run; the work is done again.")
        return not broken

    def _sealed(self, path: Path) -> bool:
        try:
            content, seal = path.with_suffix("").read_bytes(), path.read_text(errors="replace")
        except OSError:
            return False
        return digest_in(self.fingerprint, content) == seal.strip()


def _flock(handle: int, tries: int = 5) -> None:
    """Take the lock; more than once, as another process may just be asking whether it is taken."""
    for left in reversed(range(tries)):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not left:
                raise
            time.sleep(0.02)


def _own(name: str) -> bool:
    """Files of a run that never got as far as its manifest."""
    return name == LOCK or bool(TEMPORARY.match(name))


def read_result(path: Path, fingerprint: str) -> xr.Dataset:
    """A result of a run that is only read; a sentence if it is not what the run wrote."""
    content = checked(path)
    require(content is not None, f"{path} is damaged: its checksum is missing or another.")
    try:
        found = from_bytes(content or b"")
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} cannot be read: it is no result of iclab.") from error
    require(found.attrs.get("fingerprint") == fingerprint, f"{path} is of another run.")
    return found


# What stands where in a manifest, as far as it is there. Somebody else may have written it.
