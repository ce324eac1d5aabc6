"""Another model in a paper's world: `--model gated-delta`, or `--model my.py:Settings` from a file.

A paper whose world allows it has a setting `model`; its default is the paper's own model. Another model identifies a
run like any other setting. The statements about it are marked as beyond the paper and are not compared with recorded
answers. The setting ends in a digest of the file, so a run is never continued with a changed file. Workers get the text
of the file and need no copy.
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

SETTING = "model"  # the name of the setting in every paper that has it
IN_FILE = re.compile(r"(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)(@(?P<digest>[0-9a-f]{12}))?")
_TEXTS: dict[str, str] = {}  # of files, by digest; a file is read once


def require_model(name: str) -> None:
    """Refuse a name that is neither a mixer nor a class in a file. Reads and executes nothing."""
    known = name in MIXERS or IN_FILE.fullmatch(name) is not None
    require(
        known,
        f"model is {name!r}; give the name of a mixer, or a class in a file (my.py:Settings). {nearest(name, MIXERS)}",
    )


def pinned(name: str) -> str:
    """The name with the digest of its file; remembers the text of the file."""
    found = IN_FILE.fullmatch(name)
    if found is None or found["digest"] in _TEXTS:
        return name
    _, text = read_file(found["path"])
    own = hashlib.sha256(text.encode()).hexdigest()[:12]
    require(
        found["digest"] in (None, own),
        f"{found['path']} has changed since this run began; restore it, or start a new run.",
    )
    _TEXTS[own] = text
    return f"{found['path']}:{found['name']}@{own}"


def pinned_in(changes: Mapping[str, str]) -> dict[str, str]:
    """The changes of settings, with the file of a model pinned."""
    return {name: pinned(value) if name == SETTING else value for name, value in changes.items()}


def text_of(name: str) -> dict[str, str]:
    """The text of a pinned name's file, by the name; empty for a mixer."""
    found = IN_FILE.fullmatch(name)
    return {} if found is None or found["digest"] not in _TEXTS else {name: _TEXTS[found["digest"]]}


def texts() -> dict[str, str]:
    """The texts of all files that models came from, by their digest."""
    return dict(_TEXTS)


def remember(given: Mapping[str, str]) -> None:
    """Remember texts that another process has read."""
    _TEXTS.update(given)


def shown(name: str) -> str:
    """The name of a model for readers.

    >>> shown("ideas/my.py:Settings@0123456789ab"), shown("gated-delta")
    ('my.py:Settings', 'gated-delta')
    """
    found = IN_FILE.fullmatch(name)
    return name if found is None else f"{Path(found['path']).name}:{found['name']}"


def model_of(name: str, **wanted: Any) -> ModelSettings:
    """The settings of a model by name, with `wanted` values for the fields that it has. It must have a wanted depth."""
    make: Any = MIXERS[name] if name in MIXERS else _class_in_file(name)
    kind: Any = make.func if isinstance(make, functools.partial) else make
    fields = {field.name for field in dataclasses.fields(kind)}
    deep = wanted.get("depth", 1) > 1
    require("depth" in fields or not deep, f"{shown(name)} has no field `depth`, so it can have only one layer.")
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
    require(made is not None, f"{path.name} does not define {last}. {nearest(last, known)}")
    sentence = f"{path.name}: {last} cannot make a model: write an eqx.Module with `init(self, key, world)`."
    require(_makes_models(made), sentence)
    return made


def _makes_models(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, eqx.Module) and callable(vars(value).get("init"))


def require_fits(name: str, settings: ModelSettings, world: Any, loss: Loss) -> None:
    """Refuse, in one sentence, a model whose output on prompts of this world does not fit the loss."""

    def value(key: Any) -> Any:
        prompt = world.sample(key, 0)
        return loss.value(settings.init(key, world)(prompt)[0], prompt)

    file = shown(name).partition(":")[0]
    with guarded(file, "the model in this world"):
        found = jax.eval_shape(value, randomness.key(0))
    require(
        found.shape == (),
        f"{shown(name)}: with its output, the loss {loss.name!r} has the shape {found.shape} and is not one number.",
    )


def weighs(settings: ModelSettings, world: Any) -> bool:
    """Whether a model's trace has a score and a gate for each example, which probes can read."""
    found: list[bool] = []

    def trace(key: Any) -> Any:
        output, inside = settings.init(key, world)(world.sample(key, 0))
        found.append(isinstance(inside, Weighing))
        return output

    jax.eval_shape(trace, randomness.key(0))
    return found[0]


@dataclasses.dataclass(frozen=True)
class Role:
    """The model of a paper that another one can replace: the paper's word for it, the experiments that take any model,
    the figures for which these are enough, and a reading that makes no sense for another model. `unnamed` says that
    statements without the word are about it, too.
    """

    word: str
    experiments: Collection[str]
    figures: Collection[str]
    left_out: Callable[[Reading], bool] = lambda reading: False
    unnamed: bool = False

    def ask(self, name: str, statements: Sequence[Statement]) -> list[Statement]:
        """The statements about the paper's own model, about this one instead."""
        return [self._asked(shown(name), statement) for statement in statements]

    def _asked(self, name: str, statement: Statement) -> Statement:
        """One of them. Parts that measure something else are left out; without parts it cannot be tested."""
        readings = tuple(reading for reading in statement.readings if not self.left_out(reading))
        names = {reading.name for reading in readings}
        parts = [part for part in statement.parts if self._fits(part, readings, names)]
        kept = tuple(one for one in readings if any(not part.readings or one.name in part.readings for part in parts))
        if not ((self.unnamed or self.word in statement.words) and parts and kept):
            words = f"it is not about {self.word} in one layer, or it is about {self.word}'s own weights."
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
    """The statements that can be tested; an `InputError` if there are none."""
    kept = [statement for statement in statements if not statement.unfit]
    if statements and not kept:
        first = statements[0]
        raise InputError(f"{first.id} cannot be tested with {first.asked_of}: {first.unfit}")
    return kept
