"""The run directory. Files are the truth: no server, no database.

manifest.json   what this run is: ids, profile, seeds, settings, versions, device, revision, the plan of a sweep
results/        one netCDF file per experiment or shard of a sweep, written to a temporary name and renamed, and its
checksum trainings/      checkpoints of trainings; removed when a reproduction is finished, kept in a sweep for `select`
models/         one .npz per trained member (with --save-models), arrays under the paper's letters figures/        SVG,
PDF and PNG, and the numbers of every figure as CSV status.json     what a run that is still going is doing claims.json
the verdicts index.html      the page
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import importlib.metadata
import importlib.util
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from iclab.ensemble import unstack
from iclab.errors import InputError, require
from iclab.experiments import Trained
from iclab.runs.checkpoints import Folder, KeptTraining, unseal

MANIFEST = "manifest.json"
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


def as_json(content: Any) -> bytes:
    """JSON as it is written to files; NaN is refused."""
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False).encode()


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


def to_bytes(data: xr.Dataset) -> bytes:
    """A dataset as a netCDF file."""
    with _alone():
        return bytes(data.to_netcdf(engine="h5netcdf"))


def from_bytes(content: bytes) -> xr.Dataset:
    """The dataset of a netCDF file."""
    with _alone(), xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as data:
        return data.load()


def _alone() -> contextlib.AbstractContextManager[Any]:
    """On a cluster xarray would ask the scheduler for a lock on a file that nobody else can see."""
    if importlib.util.find_spec("dask") is None:
        return contextlib.nullcontext()
    import dask

    return dask.config.set(scheduler="synchronous")


def model_files(trained: Trained) -> Iterator[tuple[str, bytes]]:
    """(<experiment>/<setting>-<seed>.npz, content) for every member, with arrays under the paper's letters."""
    for index, recipe in enumerate(trained.recipes):
        setting, seed = trained.settings[index // len(trained.seeds)], trained.seeds[index % len(trained.seeds)]
        plain = setting.replace(", ", "-").replace(" ", "-")  # a file name that needs no quotes
        letters = letters_of(unstack(trained.models, index)) | letters_of(recipe.world) | dict(recipe.arrays)
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **letters)
        yield f"{trained.name}/{plain}-{seed}.npz", buffer.getvalue()


def letters_of(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a model or a world under the paper's letters, or under the names of its fields where it has no
    letters.
    """
    if hasattr(tree, "letters"):
        return dict(tree.letters())
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}


def digest_of(content: Any) -> str:
    """A digest of what can be written as JSON, however its keys are ordered."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def digest_in(fingerprint: str, content: bytes) -> str:
    """A digest of a content that belongs to a run."""
    return hashlib.sha256(fingerprint.encode() + content).hexdigest()


def checksum_of(path: Path) -> Path:
    """Where the checksum of a file is kept."""
    return path.with_name(f"{path.name}.sha256")


def checked(path: Path) -> bytes | None:
    """A file whose checksum stands beside it and is right; None otherwise."""
    try:
        content, checksum = path.read_bytes(), checksum_of(path).read_text(errors="replace")
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == checksum.strip() else None


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
MANIFEST_SHAPE = {
    "fingerprint": str,
    "identity": {
        "ids": [str], "profile": str, "seeds": int, "settings": {...: dict}, "changes": {...: str}, "save_models": bool,
        "version": str, "source": str, "numerics": dict, "files": [str], "texts": {...: str}, "text": str,
        "grid": {...: [(bool, int, float, str)]}, "base": dict,
    },
    "plan": {"texts": {...: str}, "text": str, "words": [str], "shards": [[int]]},
}  # fmt: skip


def fits(value: Any, shape: Any) -> bool:
    """Whether a value of JSON has a shape: a type, [the shape of its items], {name: the shape of what it names}, where
    ... stands for any name.

    >>> fits({"seeds": 2, "other": None}, {"seeds": int}), fits({"seeds": "2"}, {"seeds": int})
    (True, False)
    """
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        others = shape.get(..., object)
        return isinstance(value, dict) and all(fits(item, shape.get(name, others)) for name, item in value.items())
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))


def is_file(path: Path) -> bool:
    """Whether there is such a file; False also for names that no file system takes."""
    try:
        return path.is_file()
    except OSError:
        return False


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a run directory, or one sentence why there is none."""
    path = directory / MANIFEST
    if not is_file(path):
        raise InputError(f"{directory} is not a run of iclab (it has no {MANIFEST}); nothing was touched.")
    try:
        manifest = json.loads(path.read_text())
        require(fits(manifest, MANIFEST_SHAPE), f"{path} is damaged: a manifest looks otherwise; nothing was touched.")
        whole = {name: value for name, value in manifest.items() if name != "digest"}
        known = manifest["fingerprint"] == digest_of(manifest["identity"])
        right = known and manifest.get("digest") == digest_of(whole)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged and cannot be read; nothing was touched.") from error
    require(right, f"{path} is damaged or was changed by hand (its digest is another); nothing was touched.")
    return dict(manifest)


def other_run(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What another run in the same folder is, and if it differs in numerics or in the version alone, how."""
    different = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    if different == {"numerics"}:
        then, today = before.get("numerics") or {}, now.get("numerics") or {}
        names = [name for name in then | today if then.get(name) != today.get(name)]
        changed = ", ".join(f"{name} {then.get(name)}, now {today.get(name)}" for name in names)
        return f"holds a run that computed with {changed}; the two are not mixed. Go on as it was begun"
    if different and different <= {"version", "source"}:
        return "holds a run of another version of iclab, whose results are not mixed with those of this one"
    return f"holds another run ({describe(before)})"


def describe(identity: Mapping[str, Any]) -> str:
    """A run in a few words."""
    ids = " ".join(identity.get("ids", [])) or "all papers"
    swept = f" over {', '.join(identity['grid'])}" if "grid" in identity else ""
    return f"{ids[:200]}{swept}, profile {identity.get('profile')}, {identity.get('seeds')} seeds"


def environment() -> dict[str, Any]:
    """Versions, device and source revision, for the manifest and for `iclab doctor`."""
    packages = ("iclab", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "xarray", "scikit-learn", "matplotlib")
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: importlib.metadata.version(name) for name in packages} | _installed("torch", "transformers"),
        "backend": jax.default_backend(),
        "devices": [str(device) for device in jax.local_devices()],
        "revision": revision(),
    }


def _installed(*packages: str) -> dict[str, str]:
    """Versions of those of these packages that are there."""
    found = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@functools.cache
def source_digest() -> str:
    """A digest of iclab's own source files and word lists: results of other code are never mixed in, committed or
    not.
    """
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted([*root.rglob("*.py"), *root.rglob("words/*.txt")]):
        digest.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def revision() -> str | None:
    """The git revision of the source, if iclab runs from a checkout."""
    try:
        found = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
