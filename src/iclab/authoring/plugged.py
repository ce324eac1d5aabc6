"""Another model in a paper's world: `--model gated-delta`, or `--model my.py:Settings` from a file.

A paper whose world fits has a setting `model` with the paper's own as its default, so that another one is part of what
a run is, like any other setting. Its statements are then asked of that model: they are beyond the paper, say so, and
are compared with nothing on record. A file is remembered by its text: the setting ends in a digest of it, so that a run
is never continued with another text, and a worker elsewhere is given the text and needs no file.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import equinox as eqx
import jax

from iclab import randomness
from iclab.authoring.guarded import guarded
from iclab.authoring.sources import module_of, read_file
from iclab.errors import InputError, nearest, require
from iclab.losses import Loss
from iclab.models import ModelSettings
from iclab.models.zoo import MIXERS
from iclab.probes.gates import Weighing
from iclab.statements import Part, Reading, Statement

SETTING = "model"  # what the setting is called in every paper that has one
IN_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)(@(?P<digest>[0-9a-f]{12}))?")
_TEXTS: dict[str, str] = {}  # of files by their digest: what was read once stays what it is


def require_model(name: str) -> None:
    """Refuse what is neither a mixer nor a class in a file. Nothing is read or executed: a folder may say anything."""
    known = name in MIXERS or IN_FILE.fullmatch(name) is not None
    require(
        known,
        f"model is {name!r}; it is a mixer's name, or a class in a file (my.py:Settings). {nearest(name, MIXERS)}",
    )


def pinned(name: str) -> str:
    """The name with the digest of the file it means; the file's text is remembered."""
    found = IN_FILE.fullmatch(name)
    if found is None or found["digest"] in _TEXTS:
        return name
    _, text = read_file(found["path"])
    own = hashlib.sha256(text.encode()).hexdigest()[:12]
    require(found["digest"] in (None, own), f"{found['path']} has changed since; this was another text.")
    _TEXTS[own] = text
    return f"{found['path']}:{found['name']}@{own}"


def pinned_in(changes: Mapping[str, str]) -> dict[str, str]:
    """Changes of settings, with a model's file pinned."""
    return {name: pinned(value) if name == SETTING else value for name, value in changes.items()}


def text_of(name: str) -> dict[str, str]:
    """The text of the file that a pinned name means, by the name; nothing for a mixer."""
    found = IN_FILE.fullmatch(name)
    return {} if found is None or found["digest"] not in _TEXTS else {name: _TEXTS[found["digest"]]}


def texts() -> dict[str, str]:
    """The texts of all files that models came from, by their digest."""
    return dict(_TEXTS)


def remember(given: Mapping[str, str]) -> None:
    """Take over the texts that another process has read."""
    _TEXTS.update(given)


def shown(name: str) -> str:
    """What a model is called where people read it.

    >>> shown("ideas/my.py:Settings@0123456789ab"), shown("gated-delta")
    ('my.py:Settings', 'gated-delta')
    """
    found = IN_FILE.fullmatch(name)
    return name if found is None else f"{Path(found['path']).name}:{found['name']}"


def model_of(name: str, **wanted: Any) -> ModelSettings:
    """The settings of a model by its name, with these values of the fields that it has. A depth it must have."""
    make: Any = MIXERS[name] if name in MIXERS else _class_in_file(name)
    kind: Any = make.func if isinstance(make, functools.partial) else make
    fields = {field.name for field in dataclasses.fields(kind)}
    deep = wanted.get("depth", 1) > 1
    require("depth" in fields or not deep, f"{shown(name)} has no field `depth`: it can be asked about one layer only.")
    with guarded(shown(name).partition(":")[0], "the model's settings"):
        return cast(ModelSettings, make(**{field: value for field, value in wanted.items() if field in fields}))


def _class_in_file(name: str) -> Any:
    require_model(name)
    found = IN_FILE.fullmatch(pinned(name))
    assert found is not None
    path, last = Path(found["path"]), found["name"]
    module = module_of(path.stem, _TEXTS[found["digest"]])
    made = vars(module).get(last)
    known = [key for key, value in vars(module).items() if _makes_models(value)]
    require(made is not None, f"{path.name} defines no {last}. {nearest(last, known)}")
    sentence = f"{path.name}: {last} is no model's settings: an eqx.Module with `init(self, key, world)`."
    require(_makes_models(made), sentence)
    return made


def _makes_models(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, eqx.Module) and callable(vars(value).get("init"))


def require_fits(name: str, settings: ModelSettings, world: Any, loss: Loss) -> None:
    """Refuse a model that cannot answer prompts of this world with what its loss wants, in one sentence."""

    def value(key: Any) -> Any:
        prompt = world.sample(key, 0)
        return loss.value(settings.init(key, world)(prompt)[0], prompt)

    file = shown(name).partition(":")[0]
    with guarded(file, "the model in this world"):
        found = jax.eval_shape(value, randomness.key(0))
    require(
        found.shape == (),
        f"{shown(name)}: its output gives the loss {loss.name!r} the shape {found.shape}, not one number.",
    )


def weighs(settings: ModelSettings, world: Any) -> bool:
    """Whether a model keeps a score and a gate for each example, which probes can look at."""
    found: list[bool] = []

    def trace(key: Any) -> Any:
        output, inside = settings.init(key, world)(world.sample(key, 0))
        found.append(isinstance(inside, Weighing))
        return output

    jax.eval_shape(trace, randomness.key(0))
    return found[0]


@dataclasses.dataclass(frozen=True)
class Role:
    """Whose place another model takes in a paper: the paper's word for it, the experiments that any model can be put
    into, the figures that they are enough for, and a reading that has no sense for another model. `unnamed`: statements
    that do not have the word are about it, too.
    """

    word: str
    experiments: Collection[str]
    figures: Collection[str]
    left_out: Callable[[Reading], bool] = lambda reading: False
    unnamed: bool = False

    def ask(self, name: str, statements: Sequence[Statement]) -> list[Statement]:
        """The statements about the paper's own model, asked of this one."""
        return [self._asked(shown(name), statement) for statement in statements]

    def _asked(self, name: str, statement: Statement) -> Statement:
        """One of them. Parts that are measured on something else are left out; without any it cannot be asked."""
        readings = tuple(reading for reading in statement.readings if not self.left_out(reading))
        names = {reading.name for reading in readings}
        parts = [part for part in statement.parts if self._fits(part, readings, names)]
        kept = tuple(one for one in readings if any(not part.readings or one.name in part.readings for part in parts))
        if not ((self.unnamed or self.word in statement.words) and parts and kept):
            words = f"it is about something else than {self.word} in one layer, or about {self.word}'s own weights."
            return dataclasses.replace(statement, asked_of=name, unfit=words)

        def told(words: str) -> str:
            return words.replace(self.word, name)

        return dataclasses.replace(
            statement,
            source=f"{statement.source}, asked of {name}",
            words=told(statement.words),
            parts=tuple(
                dataclasses.replace(part, name=told(part.name), found_as=told(part.found_as)) for part in parts
            ),
            readings=tuple(dataclasses.replace(one, why=told(one.why)) for one in kept),
            figure=statement.figure if statement.figure in self.figures else None,
            table=None,
            ours=(f"the paper asks this of {self.word}; {name} is trained as {self.word} is", *statement.ours),
            architecture="",
            beyond=True,
            printed=None,
            hypotheses="",
            asked_of=name,
        )

    def _fits(self, part: Part, readings: Sequence[Reading], names: Collection[str]) -> bool:
        if part.readings and not set(part.readings) & set(names):
            return False
        own = [one for one in readings if not part.readings or one.name in part.readings]
        needs = [need for e in (part.statistic, part.found) if e is not None for need in e.needs]
        return all(one.experiments.get(need, need) in self.experiments for one in own for need in needs)


def refuse_unfit(statements: Sequence[Statement]) -> list[Statement]:
    """Those that can be asked; where none can, one sentence why."""
    kept = [statement for statement in statements if not statement.unfit]
    if statements and not kept:
        first = statements[0]
        raise InputError(f"{first.id} cannot be asked of {first.asked_of}: {first.unfit}")
    return kept
