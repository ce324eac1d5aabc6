"""The run directory. Files are the truth: no server, no database.

manifest.json   what this run is: ids, profile, seeds, settings, versions, device, revision
results/        one netCDF file per experiment, written to a temporary name and renamed, and its checksum
models/         one .npz per trained member (with --save-models), arrays under the paper's letters
figures/        SVG and PNG
claims.json     the verdicts
index.html      the page
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import io
import json
import os
import platform
import subprocess
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
import xarray as xr

from iclab.ensemble import unstack
from iclab.errors import InputError
from iclab.experiments import Trained

MANIFEST = "manifest.json"


class Store:
    """One run directory. Opening it checks that it is free or belongs to the same run; nothing is touched before."""

    def __init__(self, directory: Path, identity: Mapping[str, Any]) -> None:
        self.directory = directory
        self.identity = dict(identity)
        self.fingerprint = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()
        self._claim_directory()

    def _claim_directory(self) -> None:
        try:
            self._check_directory(self.directory)
        except OSError as error:
            raise InputError(f"cannot write to {self.directory}: {error.strerror or error}.") from error
        if not (self.directory / MANIFEST).exists():
            self.write_json(MANIFEST, {"fingerprint": self.fingerprint, "identity": self.identity, **environment()})

    def _check_directory(self, path: Path) -> None:
        if path.exists() and not path.is_dir():
            raise InputError(f"{path} is a file; --out needs a folder.")
        if path.exists() and any(path.iterdir()):
            before = read_manifest(path)
            if before["fingerprint"] != self.fingerprint:
                raise InputError(
                    f"{path} holds another run ({describe(before['identity'])}); choose another --out or remove it."
                )
        path.mkdir(parents=True, exist_ok=True)
        probe = path / f".{uuid.uuid4().hex}"
        probe.touch()
        probe.unlink()

    def write(self, name: str, content: bytes) -> Path:
        """Write a file so that it is there whole or not at all."""
        target = self.directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            temporary.write_bytes(content)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        return target

    def write_json(self, name: str, content: Any) -> Path:
        """Write JSON; NaN is refused rather than written as something other readers cannot parse."""
        return self.write(name, json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False).encode())

    def save_result(self, name: str, data: xr.Dataset, seconds: float) -> None:
        """Keep an experiment's dataset, marked as belonging to this run, with a checksum beside it."""
        marked = data.assign_attrs(fingerprint=self.fingerprint, seconds=seconds)
        target = self.directory / "results" / f"{name}.nc"
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            marked.to_netcdf(temporary, engine="h5netcdf")
            digest = hashlib.sha256(temporary.read_bytes()).hexdigest()
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
        self.write(f"results/{name}.nc.sha256", digest.encode())

    def load_result(self, name: str) -> xr.Dataset | None:
        """An experiment's dataset if this run has finished it; None if not, or if the file is damaged or foreign."""
        target = self.directory / "results" / f"{name}.nc"
        checksum = self.directory / "results" / f"{name}.nc.sha256"
        if not (target.exists() and checksum.exists()):
            return None
        content = target.read_bytes()
        if hashlib.sha256(content).hexdigest() != checksum.read_text(errors="replace"):
            return None
        with xr.open_dataset(io.BytesIO(content), engine="h5netcdf") as data:
            loaded = data.load()
        return loaded if loaded.attrs.get("fingerprint") == self.fingerprint else None

    def save_models(self, trained: Trained) -> None:
        """Every member as models/<experiment>/<setting>-<seed>.npz; plain arrays, so that loading never needs pickle."""
        for index, recipe in enumerate(trained.recipes):
            setting, seed = trained.settings[index // len(trained.seeds)], trained.seeds[index % len(trained.seeds)]
            plain = setting.replace(", ", "-").replace(" ", "-")  # a file name that needs no quotes
            target = self.directory / "models" / trained.name / f"{plain}-{seed}.npz"
            target.parent.mkdir(parents=True, exist_ok=True)
            letters = unstack(trained.models, index).letters() | recipe.world.letters() | dict(recipe.arrays)
            temporary = target.with_name(f".{uuid.uuid4().hex}.npz")
            np.savez(temporary, allow_pickle=False, **letters)
            os.replace(temporary, target)


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a run directory, or one sentence why there is none."""
    path = directory / MANIFEST
    if not path.is_file():
        raise InputError(f"{directory} is not a run of iclab (it has no {MANIFEST}); nothing was touched.")
    try:
        manifest = json.loads(path.read_text())
        manifest["fingerprint"], manifest["identity"].items(), list(manifest["identity"].get("ids", []))
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is damaged and cannot be read; nothing was touched.") from error
    return manifest


def describe(identity: Mapping[str, Any]) -> str:
    """A run in a few words."""
    ids = " ".join(identity.get("ids", [])) or "all papers"
    return f"{ids[:200]}, profile {identity.get('profile')}, {identity.get('seeds')} seeds"


def environment() -> dict[str, Any]:
    """Versions, device and source revision, for the manifest and for `iclab doctor`."""
    packages = ("iclab", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "xarray", "scikit-learn", "matplotlib")
    return {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: importlib.metadata.version(name) for name in packages},
        "backend": jax.default_backend(),
        "devices": [str(device) for device in jax.local_devices()],
        "revision": revision(),
    }


def revision() -> str | None:
    """The git revision of the source, if iclab runs from a checkout."""
    try:
        found = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
