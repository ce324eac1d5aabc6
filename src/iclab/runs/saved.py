"""Trained models in files: arrays under the paper's letters, and JSON that says how they make up a model.

A file is data. Nothing in it is executed or unpickled: classes are looked up by name among the models and worlds of
iclab, or among those that the caller gives.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from iclab.errors import InputError, require
from iclab.models import Model
from iclab.worlds import World

MAKING = "how_it_is_made"  # the entry of an .npz file that says how its arrays become a model
KNOWN = ("iclab.models.", "iclab.worlds.")  # where classes named in a file may come from
PLAIN = (bool, int, float, str, type(None))


class UnknownKindError(Exception):
    """Something that cannot be described as data, such as a function."""


def making(
    model: Any, world: Any, letters: Mapping[str, np.ndarray], about: Mapping[str, Any]
) -> dict[str, np.ndarray]:
    """The entries to write beside the letters of a model: how they make up the model and its world, and further arrays.

    Empty if a part of the model is not data (a function, say); other programs can still read the letters.
    """
    more: dict[str, np.ndarray] = {}
    try:
        told = {name: _described(tree, name, letters, more) for name, tree in (("model", model), ("world", world))}
    except UnknownKindError:
        return {}
    return more | {MAKING: np.array(json.dumps({**about, **told}))}


def _described(tree: Any, path: str, letters: Mapping[str, np.ndarray], more: dict[str, np.ndarray]) -> Any:
    """A tree as JSON. An array is named by a letter with the same content, or else added under its path."""
    if isinstance(tree, enum.Enum):
        return {"enum": _name_of(type(tree)), "member": tree.name}
    if isinstance(tree, PLAIN):
        return {"value": tree}
    if isinstance(tree, np.ndarray | np.generic | jax.Array):
        array = np.asarray(tree)
        same = [name for name, other in letters.items() if _same(array, np.asarray(other))]
        name = same[0] if same else path
        if not same:
            more[name] = array
        return {"array": name, "shape": list(array.shape)}
    if isinstance(tree, tuple | list):
        return {"tuple": [_described(item, f"{path}.{place}", letters, more) for place, item in enumerate(tree)]}
    if isinstance(tree, eqx.Module):
        names = [field.name for field in dataclasses.fields(tree)]
        inside = {name: _described(getattr(tree, name), f"{path}.{name}", letters, more) for name in names}
        return {"class": _name_of(type(tree)), "fields": inside}
    raise UnknownKindError(type(tree).__name__)


def _same(one: np.ndarray, other: np.ndarray) -> bool:
    return one.dtype == other.dtype and one.size == other.size and one.tobytes() == other.tobytes()


def _name_of(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


@dataclasses.dataclass(frozen=True)
class Saved:
    """A file of one trained member."""

    path: Path
    arrays: Mapping[str, np.ndarray]
    kinds: Mapping[str, type]

    def model(self) -> Model:
        """The model, ready to be called on a prompt."""
        return cast(Model, self._built("model"))

    def world(self) -> World:
        """The world that it was trained in."""
        return cast(World, self._built("world"))

    def _built(self, what: str) -> Any:
        told = self.arrays.get(MAKING)
        require(
            told is not None,
            f"{self.path} has arrays, but does not say how they make up a model: a part of the model is not data, or "
            "another version of iclab wrote the file.",
        )
        try:
            return self._made(json.loads(str(told))[what])
        except (ValueError, KeyError, TypeError, AttributeError, ImportError, RecursionError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{self.path} is damaged: its description of the {what} cannot be read.") from error

    def _made(self, told: Mapping[str, Any]) -> Any:
        if "value" in told:
            return told["value"]
        if "array" in told:
            return jnp.asarray(self.arrays[told["array"]].reshape(told["shape"]))
        if "tuple" in told:
            return tuple(self._made(item) for item in told["tuple"])
        if "enum" in told:
            return self._kind(told["enum"], enum.Enum)[told["member"]]
        kind = self._kind(told["class"], eqx.Module)
        made = object.__new__(kind)
        fields = {field.name for field in dataclasses.fields(kind)}
        if fields != set(told["fields"]):
            raise KeyError("fields")
        for name, inside in told["fields"].items():
            object.__setattr__(made, name, self._made(inside))
        return made

    def _kind(self, name: str, base: type) -> Any:
        """A class by its name, from iclab or from the caller."""
        module, _, last = str(name).partition(":")
        if last in self.kinds:
            return self.kinds[last]
        require(
            module.startswith(KNOWN),
            f"{self.path} needs {last}, which is not a class of iclab; give it: load_model(FILE, classes=[{last}]).",
        )
        found = getattr(importlib.import_module(module), last)
        if not (isinstance(found, type) and issubclass(found, base)):
            raise KeyError(name)
        return found


def read_saved(path: Path, classes: Iterable[type] = ()) -> Saved:
    """Read a file in the `models/` folder of a run."""
    try:
        return Saved(path, _arrays(path.read_bytes()), {kind.__name__: kind for kind in classes})
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is not a model of iclab: it cannot be read as an .npz file.") from error


def _arrays(content: bytes) -> dict[str, np.ndarray]:
    found = np.load(io.BytesIO(content), allow_pickle=False)
    if not isinstance(found, np.lib.npyio.NpzFile):
        raise ValueError("not an archive of arrays")
    with found as file:
        return {name: file[name] for name in file.files}


def load_model(file: str | Path, classes: Sequence[type] = ()) -> Model:
    """Load a trained model from a file in a run's `models/` folder; call it on a prompt.

    `classes` are your own classes that the model uses.
    """
    return read_saved(Path(file), classes).model()


def file_part(setting: str) -> str:
    """A part of a file's name that needs no quotes."""
    return setting.replace(", ", "-").replace(" ", "-")
