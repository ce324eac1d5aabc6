"""The laboratory bench: named trainings and evaluations over seeds, as labelled arrays.

A paper's experiments are functions of a `Lab`. They call it to train recipes and to evaluate the trained models in
other worlds; every result is an xarray object with the dimensions setting, seed and whatever is swept. A diverged
member is NaN in every result, so that no mean includes it.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import types
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from iclab import ensemble, evaluation, training
from iclab.engine import ComputingEngine, EndedError, Engine, EvaluationRequest, TrainingRequest
from iclab.errors import require_positive
from iclab.losses import Loss, hinge
from iclab.optimisation import Training
from iclab.training import Member, Observer

RECORDS = 20  # of a training that is given only its number of steps
CONTROL_PROMPTS = 1000  # fresh prompts, at most, on which an untrained model is tested


class NoSeedsError(EndedError):
    """A training that takes only the first few seeds was requested on a bench that has others."""


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One setting of a training: a world, a model's settings, the optimiser, and the worlds to observe it in.

    `arrays` are saved with the models, beside the world's own patterns.
    """

    world: Any
    model: Any
    training: Training
    watched: tuple[Any, ...] = ()
    arrays: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Trained:
    """A trained ensemble, setting-major. `history` has the dimensions setting, seed, step and those of probes."""

    name: str
    settings: tuple[str, ...]
    seeds: tuple[int, ...]
    recipes: tuple[Recipe, ...]
    models: Any
    diverged: np.ndarray
    history: xr.Dataset
    best: Any = None

    def at_best(self) -> Trained:
        """The same ensemble, every member at the record where `best_of` was lowest."""
        return dataclasses.replace(self, name=f"{self.name}@best", models=self.best)

    def grid(self, values: np.ndarray) -> np.ndarray:
        """Members along the first axis -> (setting, seed), with diverged members as NaN."""
        values = np.asarray(values, float).copy()
        values[self.diverged] = np.nan
        return values.reshape(len(self.settings), len(self.seeds), *values.shape[1:])

    def model(self, seed: int, setting: str | None = None) -> Any:
        """The model of one member; `setting` chooses one of several."""
        number = self.settings.index(self.settings[0] if setting is None else setting) * len(
            self.seeds
        ) + self.seeds.index(seed)
        return jax.tree.map(jnp.asarray, ensemble.unstack(self.models, number))

    def only(self, setting: str) -> Trained:
        """The members of one setting."""
        first = self.settings.index(setting) * len(self.seeds)
        own = slice(first, first + len(self.seeds))
        models = jax.tree.map(lambda leaf: leaf[own], self.models)
        return dataclasses.replace(
            self, settings=(setting,), recipes=self.recipes[own], models=models, diverged=self.diverged[own],
            history=self.history.sel(setting=[setting]),
        )  # fmt: skip

    def chosen(self, best: np.ndarray) -> Trained:
        """One member per seed, that of setting number `best[seed]`, as one setting "chosen"; without history."""
        own = np.asarray(best) * len(self.seeds) + np.arange(len(self.seeds))
        return dataclasses.replace(
            self, settings=("chosen",), recipes=tuple(self.recipes[number] for number in own),
            models=jax.tree.map(lambda leaf: leaf[own], self.models), diverged=self.diverged[own], history=xr.Dataset(),
            best=None,
        )  # fmt: skip


class Lab:
    """Trains and evaluates for one paper. `settings` is the paper's own dataclass; trainings are remembered by name.

    `label` distinguishes this bench from others of the same run (a point of a sweep, say). It names files on disk and
    never enters a random stream: a point of a sweep has the same numbers as a run at its settings.

    An `untrained` bench is the control of every experiment: it gets the same requests, but its models stay as
    initialised. Work outside compiled programs does not depend on models, so `replay` spares the control that work.
    `used` are the names of the trainings requested since it was emptied. `experiments` are the names of those that run
    on it, where that is known.
    """

    def __init__(
        self,
        paper: str,
        settings: Any,
        seeds: Sequence[int],
        *,
        engine: Engine | None = None,
        label: str = "",
        progress: Callable[[str, float], None] = lambda what, fraction: None,
        on_trained: Callable[[Trained], None] = lambda trained: None,
        untrained: bool = False,
        experiments: Collection[str] | None = None,
        control_prompts: int = CONTROL_PROMPTS,
    ) -> None:
        self.paper = paper
        self.settings = settings
        self.seeds = tuple(seeds)
        self._engine = engine or ComputingEngine()
        self._label = label
        self._progress = progress
        self._on_trained = on_trained
        self._trained: dict[str, Trained] = {}
        self.used: set[str] = set()
        self._untrained = untrained
        self._experiments = experiments
        self._control_prompts = control_prompts
        self._replayed: list[np.ndarray] = []
        self.computed_outside: list[np.ndarray] = []

    def runs(self, *experiments: str) -> bool:
        """Whether one of these experiments runs on this bench. What they alone read of a training is not observed for
        others, which takes less time; the trained models are the same.
        """
        return self._experiments is None or not set(experiments).isdisjoint(self._experiments)

    def asking(self, engine: Engine, progress: Callable[[str, float], None]) -> Lab:
        """The same bench for one of several concurrent experiments: it shares trainings, but has its own notes."""
        own = copy.copy(self)
        own._engine, own._progress = engine, progress
        own.used, own._replayed, own.computed_outside = set(), [], []
        return own

    def train(
        self,
        name: str,
        recipes: Recipe | Mapping[str, Recipe | Callable[[int], Recipe]],
        record_at: int | Sequence[int],
        observers: tuple[Observer, ...] = (),
        loss: Loss = hinge,
        best_of: str = "",
        at_most: int | None = None,
    ) -> Trained:
        """Train every recipe (one, or several by name; each may be a function of the seed) with every seed.

        `record_at` are the steps to record, or the number of steps, which gives 20 records. A second call with the same
        name is free. `best_of` names a recorded value; `Trained.at_best()` then gives the models at the record where it
        was lowest, and the history has that `best_step`. `at_most` takes only the seeds below it, for a training that
        costs much more than the paper's others.
        """
        name = f"{self.paper}-{name}"
        self.used.add(name)
        if name in self._trained:
            return self._trained[name]
        recipes = {"standard": recipes} if isinstance(recipes, Recipe) else recipes
        if isinstance(record_at, int):
            record_at = sorted({round(record_at * part / RECORDS) for part in range(RECORDS + 1)})
        seeds = tuple(seed for seed in self.seeds if at_most is None or seed < at_most)
        if not seeds:
            raise NoSeedsError
        pairs = list(itertools.product(recipes, seeds))
        made = [_made(recipes[setting], seed) for setting, seed in pairs]
        keys = ensemble.member_keys((f"{name}/{setting}", seed) for setting, seed in pairs)
        members = Member(keys, *ensemble.stack([(r.world, r.model, r.training, r.watched) for r in made]))
        what = f"training {name}: {len(pairs)} members"

        def report(fraction: float, note: str) -> None:
            self._progress(f"{what}, {note}" if note else what, fraction)

        own = f"{self._label}{name}{'-untrained' * self._untrained}"
        moments = (0,) if self._untrained else tuple(record_at)
        request = TrainingRequest(own, members, loss, moments, observers, best_of, keep=not self._untrained)
        states, records = self._engine.train(request, report)
        if name in self._trained:  # another experiment that requested it continued first
            return self._trained[name]
        if self._untrained:  # nothing changes: every record is the first
            records = {key: np.repeat(values, len(record_at), axis=1) for key, values in records.items()}
        trained = Trained(
            name,
            tuple(recipes),
            seeds,
            tuple(made),
            states.model,
            training.diverged(states),
            xr.Dataset(),
            states.best.model if states.best is not None else None,
        )
        history = _dataset(
            trained, {key: (("step",), values) for key, values in records.items()}, {"step": list(record_at)}
        )
        shape = len(recipes), len(seeds)
        history["diverged_at"] = (("setting", "seed"), states.diverged_at.reshape(shape))
        if states.best is not None:
            history["best_step"] = (("setting", "seed"), states.best.step.reshape(shape))
        trained = dataclasses.replace(trained, history=history)
        self._trained[name] = trained
        self._on_trained(trained)
        return trained

    def evaluate(
        self,
        trained: Trained,
        name: str,
        measure: evaluation.Measure,
        world: Any,
        dims: Mapping[str, Sequence[Any]] = types.MappingProxyType({}),
        prompts: int = 2000,
        prepare: Callable[[Any, Any], Any] = evaluation.unchanged,
        preparation: Callable[..., Any] = lambda **coordinates: np.float32(0),
    ) -> xr.Dataset:
        """The measure's mean over fresh prompts, for every member and every point of the grid `dims`.

        `world(setting, seed, **coordinates)` is the test world (or one world for all); `prepare(model,
        preparation(seed=..., **coordinates))` may change the model first. All points of the grid see the same random
        draws, so differences along it are paired.
        """
        require_positive(prompts=prompts)
        prompts = min(prompts, self._control_prompts) if self._untrained else prompts
        place = (lambda *at, **coordinates: world) if hasattr(world, "sample") else world
        points = [dict(zip(dims, values, strict=True)) for values in itertools.product(*dims.values())]
        pairs = list(itertools.product(trained.settings, trained.seeds))
        picks = np.repeat(np.arange(len(pairs)), len(points))
        keys = ensemble.member_keys((f"{trained.name}/{setting}/{name}", seed) for setting, seed in pairs)
        jobs = evaluation.Jobs(
            models=trained.models,
            preparations=ensemble.stack([preparation(seed=seed, **point) for _, seed in pairs for point in points]),
            worlds=ensemble.stack([place(setting, seed, **point) for setting, seed in pairs for point in points]),
            keys=ensemble.part(keys, picks),
            picks=picks,
        )
        what = f"{self.paper}: {name}, {len(picks)} evaluations of {prompts} prompts"
        request = EvaluationRequest(f"{self._label}{trained.name}/{name}", measure, jobs, prompts, prepare)
        found = self._engine.evaluate(request, lambda fraction, _: self._progress(what, fraction))
        shape = [len(values) for values in dims.values()]
        arrays = {
            key: (tuple(dims), values.reshape(len(pairs), *shape, *values.shape[1:])) for key, values in found.items()
        }
        return _dataset(trained, arrays, dims)

    def outside(self, compute: Callable[[], np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
        """Work that is not compiled, such as a classifier of another library; `shape` is that of its result."""
        found = self._replayed.pop(0) if self._replayed else self._engine.outside(compute, shape)
        self.computed_outside.append(found)
        return found

    def replay(self, found: Sequence[np.ndarray]) -> None:
        """Answer the next calls of `outside` with these, in order."""
        self._replayed = list(found)

    def report(self, what: str, fraction: float) -> None:
        """Report the progress of work outside compiled programs."""
        self._progress(what, fraction)

    def diverged(self) -> tuple[int, int]:
        """Of the trainings in `used`: how many members diverged, and how many there are."""
        found = [self._trained[name].diverged for name in self.used if name in self._trained]
        return sum(int(lost.sum()) for lost in found), sum(len(lost) for lost in found)

    def trainings(self) -> dict[str, Trained]:
        """What has been trained so far, by name."""
        return dict(self._trained)


def _made(recipe: Recipe | Callable[[int], Recipe], seed: int) -> Recipe:
    return recipe if isinstance(recipe, Recipe) else recipe(seed)


def _dataset(
    trained: Trained,
    arrays: Mapping[str, tuple[tuple[str, ...], np.ndarray]],
    coordinates: Mapping[str, Sequence[Any]],
) -> xr.Dataset:
    """Arrays with members first become (setting, seed, *dims, *own axes); "name@axis" names an own axis, numbered from
    0.
    """
    variables = {}
    axes: dict[str, Sequence[Any]] = {}
    for key, (dims, values) in arrays.items():
        name, *own = key.split("@")
        variables[name] = (("setting", "seed", *dims, *own), trained.grid(values))
        axes |= {axis: range(length) for axis, length in zip(own, values.shape[1 + len(dims) :], strict=True)}
    labels = {"setting": trained.settings, "seed": trained.seeds} | axes | dict(coordinates)
    return xr.Dataset(variables, {name: list(values) for name, values in labels.items()})
