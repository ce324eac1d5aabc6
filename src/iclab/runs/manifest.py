"""The manifest says what a run is: ids, profile, seeds, settings, versions, device, the plan of a sweep."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.metadata
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax

from iclab.errors import InputError, require
from iclab.runs.contents import digest_of, is_file

MANIFEST = "manifest.json"
MANIFEST_SHAPE = {  # as far as it is there; somebody else may have written it
    "fingerprint": str,
    "identity": {
        "ids": [str], "profile": str, "seeds": int, "looks": [int], "settings": {...: dict}, "changes": {...: str},
        "save_models": bool, "version": str, "source": str, "numerics": dict, "files": [str], "texts": {...: str},
        "text": str, "grid": {...: [(bool, int, float, str)]}, "base": dict,
    },
    "plan": {"texts": {...: str}, "text": str, "words": [str], "shards": [[int]]},
}  # fmt: skip


def fits(value: Any, shape: Any) -> bool:
    """Whether a JSON value has a shape: a type, [shape of the items], or {name: shape}; ... stands for any name.

    >>> fits({"seeds": 2, "other": None}, {"seeds": int}), fits({"seeds": "2"}, {"seeds": int})
    (True, False)
    """
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if isinstance(shape, dict):
        others = shape.get(..., object)
        return isinstance(value, dict) and all(fits(item, shape.get(name, others)) for name, item in value.items())
    return isinstance(value, shape) and not (shape is int and isinstance(value, bool))


def read_manifest(directory: Path) -> dict[str, Any]:
    """The manifest of a run directory; an `InputError` if it is missing or damaged."""
    path = directory / MANIFEST
    if not is_file(path):
        raise InputError(f"{directory} is not a run of iclab: it has no {MANIFEST}. Nothing was changed.")
    try:
        manifest = json.loads(path.read_text())
        require(
            fits(manifest, MANIFEST_SHAPE),
            f"{path} is damaged: it does not have the form of a manifest. Nothing was changed.",
        )
        whole = {name: value for name, value in manifest.items() if name != "digest"}
        known = manifest["fingerprint"] == digest_of(manifest["identity"])
        right = known and manifest.get("digest") == digest_of(whole)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is damaged and cannot be read. Nothing was changed.") from error
    require(right, f"{path} is damaged or was edited: its digest is wrong. Nothing was changed.")
    return dict(manifest)


def other_run(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """How a run in the same folder differs; details if only its numerics or version differ."""
    different = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    if different == {"numerics"}:
        then, today = before.get("numerics") or {}, now.get("numerics") or {}
        names = [name for name in then | today if then.get(name) != today.get(name)]
        changed = ", ".join(f"{name} {then.get(name)}, now {today.get(name)}" for name in names)
        return f"holds a run computed with {changed}; the two cannot be mixed. Restore the old values, or"
    if different and different <= {"version", "source"}:
        return "holds a run of another version of iclab; the two cannot be mixed"
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
    """The versions of these packages, as far as they are installed."""
    found = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@functools.cache
def source_digest() -> str:
    """A digest of iclab's source files and word lists, so that results of different code are never mixed."""
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
