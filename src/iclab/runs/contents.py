"""The contents of a run's files: datasets, models and JSON as bytes, and their digests."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from iclab.ensemble import unstack
from iclab.experiments import Trained
from iclab.runs import netcdf
from iclab.runs.saved import file_part, making


def as_json(content: Any) -> bytes:
    """JSON as written to files; NaN is refused."""
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False).encode()


def to_bytes(data: xr.Dataset) -> bytes:
    """A dataset as a netCDF file."""
    if netcdf.is_plain(data):
        return netcdf.written(data)
    with _alone():
        return bytes(data.to_netcdf(engine="h5netcdf"))


def from_bytes(content: bytes) -> xr.Dataset:
    """The dataset of a netCDF file. One of another form than ours, or none, is left to xarray."""
    with contextlib.suppress(OSError, LookupError, ValueError, TypeError, AttributeError, RuntimeError):
        if (found := netcdf.read(content)) is not None:
            return found
    with _alone(), xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as data:
        return data.load()


def _alone() -> contextlib.AbstractContextManager[Any]:
    """Without this, xarray on a cluster asks the scheduler to lock a file that no other process can see."""
    if importlib.util.find_spec("dask") is None:
        return contextlib.nullcontext()
    import dask

    return dask.config.set(scheduler="synchronous")


def model_files(trained: Trained) -> Iterator[tuple[str, bytes]]:
    """(<experiment>/<setting>-<seed>.npz, content) for every member, with arrays under the paper's letters."""
    for index, recipe in enumerate(trained.recipes):
        setting, seed = trained.settings[index // len(trained.seeds)], trained.seeds[index % len(trained.seeds)]
        model = unstack(trained.models, index)
        letters = letters_of(model) | letters_of(recipe.world) | dict(recipe.arrays)
        about = {"training": trained.name, "setting": setting, "seed": seed}
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **letters, **making(model, recipe.world, letters, about))
        yield f"{trained.name}/{file_part(setting)}-{seed}.npz", buffer.getvalue()


def letters_of(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a model or a world under the paper's letters, or its field names if it has no letters."""
    if hasattr(tree, "letters"):
        return dict(tree.letters())
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf) for path, leaf in leaves}


def digest_of(content: Any) -> str:
    """A digest of JSON content, independent of the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def digest_in(fingerprint: str, content: bytes) -> str:
    """A digest of content that belongs to a run."""
    return hashlib.sha256(fingerprint.encode() + content).hexdigest()


def checksum_of(path: Path) -> Path:
    """Where the checksum of a file is kept."""
    return path.with_name(f"{path.name}.sha256")


def checked(path: Path) -> bytes | None:
    """The content of a file if the checksum beside it is right; None otherwise."""
    try:
        content, checksum = path.read_bytes(), checksum_of(path).read_text(errors="replace")
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == checksum.strip() else None


def is_file(path: Path) -> bool:
    """Whether this file exists; False for names that the file system refuses."""
    try:
        return path.is_file()
    except OSError:
        return False
