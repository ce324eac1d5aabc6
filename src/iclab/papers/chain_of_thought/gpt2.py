"""Beyond the paper: the reasoning steps of chain-of-thought on GPT-2.

GPT-2 is trained on the prompts of the one-layer model and asked the same: does it answer all steps on noisy, partly
wrong examples of unseen patterns, does the chain help where the answer at once cannot be right, where does a head look?
Its positions are learned, so both are tested with as many examples as they were trained on, on the same prompts.
"""

from __future__ import annotations

import functools

import xarray as xr
from jaxtyping import Array, Key

from iclab.authoring import Expression, Lab, Member, Recipe, Trained, errors, expect, measured, squared
from iclab.authoring.gpt2 import GPT2Training
from iclab.inference import chain_errors
from iclab.models.gpt2 import GPT2
from iclab.papers.chain_of_thought import settings as worlds
from iclab.papers.chain_of_thought.laws import COMPARISON, FRACTIONS
from iclab.papers.chain_of_thought.settings import Settings, output_matrices, step_matrices
from iclab.probes.attention import by_head
from iclab.probes.steps import step_masses
from iclab.worlds.reasoning import Mode

MODELS = {"one layer": "one-layer Transformer", "GPT-2": "GPT-2"}


def observe(model: GPT2, member: Member, key: Key[Array, ""]) -> dict[str, Array]:
    """The query's attention by step and pattern, layer and head, on noisy test prompts."""
    return expect(lambda asked, prompt: by_head(step_masses(asked, prompt)), model, member.watched[0], key, 2)


def recipe(s: Settings, seed: int) -> Recipe:
    """GPT-2 on the training prompts of the one-layer model, watched as that is."""
    one, tokens = worlds.recipe(s, seed), s.reasoning_steps * (s.train_length + 1)
    return Recipe(one.world, s.gpt2.model(tokens), s.gpt2.training(), one.watched, one.arrays)


def trained(lab: Lab) -> Trained:
    """The one training."""
    s: Settings = lab.settings
    recipes = {"GPT-2": functools.partial(recipe, s)}
    return lab.train("gpt2", recipes, s.gpt2.record_at(), (observe,), squared, at_most=s.gpt2.seeds)


def with_loss(lab: Lab, model: Trained, sizes: Settings | GPT2Training) -> xr.Dataset:
    """An observed training, and the loss on fresh prompts made like the training ones."""

    def place(setting: str, seed: int, domain: str) -> object:
        return worlds.recipe(lab.settings, seed).world

    found = lab.evaluate(model, "convergence", errors(squared), place, {"domain": ("training prompts",)}, sizes.prompts)
    last = found.isel(domain=0, drop=True)
    return model.history.assign(loss=last["squared"], error=last["error"]).isel(setting=0)


def steps(lab: Lab, one_layer: Trained) -> xr.Dataset:
    """Both models with l_tr examples: CoT error against α', and CoT against ICL where Condition 1 fails."""
    s: Settings = lab.settings
    failing = {"Condition 1 fails": (output_matrices(s, *COMPARISON, condition_1=False), s.test_matching_fraction)}
    cases = {f"α' = {fraction:g}": (step_matrices(s), fraction) for fraction in FRACTIONS} | failing

    def errors_of(model: Trained, mode: Mode, asked: dict) -> xr.DataArray:
        def place(setting: str, seed: int, case: str) -> object:
            return worlds.inference_world(s, seed, mode, *cases[case], s.train_length, s.train_length)

        measure = chain_errors if mode is Mode.chain else errors(squared)
        found = lab.evaluate(model, f"gpt2 {mode.name}", measure, place, {"case": tuple(asked)}, s.gpt2.prompts)
        return found["error"].isel(setting=0, drop=True)

    def asked(model: Trained) -> xr.Dataset:
        chain, direct = errors_of(model, Mode.chain, cases), errors_of(model, Mode.direct, failing)
        by_fraction = chain.isel(case=slice(-1)).rename(case="fraction").assign_coords(fraction=list(FRACTIONS))
        failed = {"failing_cot": chain.isel(case=-1, drop=True), "failing_icl": direct.isel(case=0, drop=True)}
        return xr.Dataset({"error": by_fraction} | failed)

    return xr.concat([asked(one_layer), asked(trained(lab))], xr.Variable("model", list(MODELS)), join="outer")


def own_steps(name: str) -> Expression:
    """What `steps` found of GPT-2, for its own seeds: the one-layer model may have more."""
    return measured("gpt2-steps", name).sel(model="GPT-2", seed=measured("gpt2-training", "seed"))
