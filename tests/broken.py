"""Deliberate mistakes in a sound file, one for each promise that `iclab check` tests: what is replaced by what."""

import dataclasses

SOUND = '''
"""A sound file."""
import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from iclab import randomness
from iclab.authoring import *


@dataclasses.dataclass(frozen=True)
class Settings:
    noise: float = 0.1
    steps: int = 3


settings = Settings()


class World(BaseWorld):
    length: int = 6
    noise: float = 0.1
    longest: int = static(6)

    def sample(self, key, index):
        drawn = jax.random.normal(key, (5, self.longest + 1))
        kind = jnp.where(drawn[4] > 0, 1, 0)
        x = drawn[:3].T + 4.0 * jnp.where(kind == 0, 1.0, -1.0)[:, None]
        y = jnp.sum(x, axis=1) + self.noise * drawn[3]
        tokens = jnp.column_stack([x, y.at[-1].set(0.0)])
        present = jnp.arange(self.longest) < self.length
        return make_prompt(tokens, target=y[-1], label=y[:-1], pattern=kind, present=present)


class Attention(eqx.Module):
    weights: jax.Array

    def __call__(self, prompt):
        tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)
        scores = tokens[:-1] @ self.weights @ tokens[-1]
        output = scores @ tokens[:-1, -1] / jnp.sum(prompt.present[:-1])
        return output, {"scores": scores}


class AttentionSettings(eqx.Module):
    scale: float = 0.1

    def init(self, key, world):
        return Attention(self.scale * jax.random.normal(key, (world.columns, world.columns)))


def probe(model, prompt):
    output, trace = model(prompt)
    return {"output": output, "scores@context": trace["scores"]}


def observe(model, member, key):
    return expect(probe, model, member.world, key, 1, batch=8)


loss = Loss("distance", lambda output, prompt: (output - prompt.target) ** 2)


def experiment(lab):
    world = World(noise=lab.settings.noise)
    recipe = Recipe(world, AttentionSettings(), Training(0.01, batch=8))
    trained = lab.train("main", recipe, lab.settings.steps, (observe,), loss)
    return lab.evaluate(trained, "test", probe, world, prompts=250)


small = Part("output", measured("experiment", "output"), below(1.0))
statements = [Statement("small", "", "The output is small.", (small,))]
'''.lstrip()


@dataclasses.dataclass(frozen=True)
class Mistake:
    """`old` becomes `new`; `part` and `check` must fail, with these words and this advice."""

    name: str
    old: str
    new: str
    part: str
    check: str
    words: str
    remedy: str = ""

    @property
    def text(self):
        assert SOUND.count(self.old) == 1
        return SOUND.replace(self.old, self.new)


MISTAKES = (
    Mistake("not_a_prompt", "return make_prompt(tokens, target=y[-1], label=y[:-1], pattern=kind, present=present)",
            "return tokens, y[-1]", "world World", "shapes", "sample returned tuple, not a prompt", "make_prompt(tokens, target)"),
    Mistake("vector_target", "target=y[-1]", "target=y[-1:]", "world World", "shapes", "the target has the shape (1,)"),
    Mistake("short_pattern", "pattern=kind,", "pattern=kind[:-1],", "world World", "shapes", "`pattern` has 6 entries, but there are 7 tokens"),
    Mistake("infinite", "target=y[-1]", "target=y[-1] / 0.0", "world World", "shapes", "not finite", "divisions by zero"),
    Mistake("columns", "    def sample(self", "    columns = property(lambda self: 3)\n\n    def sample(self", "world World", "columns",
            "tokens have 4 columns; the world says columns = 3"),
    Mistake("traced_shape", "present = jnp.arange(self.longest) < self.length", "present = jnp.arange(self.length) < 6",
            "world World", "jit and vmap", "a traced number is used", "static(20)"),
    Mistake("python_if", "        tokens = jnp.column_stack([x, y.at[-1].set(0.0)])\n",
            "        tokens = jnp.column_stack([x, y.at[-1].set(0.0)])\n        if y[0] > 0:\n            tokens = tokens + 0.0\n",
            "world World", "jit and vmap", "line 33: a Python `if` or `while` needs the value", "jnp.where"),
    Mistake("numpy_on_traced", "y = jnp.sum(x, axis=1) +", "y = np.sum(np.asarray(x), axis=1) +", "world World", "jit and vmap", "a NumPy function got a traced value", "jax.numpy"),
    Mistake("numpy_random", "y = jnp.sum(x, axis=1) +", "y = np.random.standard_normal() + jnp.sum(x, axis=1) +", "world World", "keys",
            "the same key gives two different prompts", "never from numpy.random"),
    Mistake("constant_key", "jax.random.normal(key, (5, self.longest + 1))", "jax.random.normal(randomness.key(0), (5, self.longest + 1))", "world World", "keys",
            "two different keys give the same tokens", "constant key"),
    Mistake("other_label", "label=y[:-1]", "label=-y[:-1] + 1.0", "world World", "truth", "a label in their columns that differs from `label`", "Set both from one"),
    Mistake("answer_shown", "y.at[-1].set(0.0)", "y", "world World", "truth", "they may give the answer away", "belongs in `target`"),
    Mistake("other_pattern", "pattern=kind,", "pattern=jnp.where(drawn[3] > 0, 1, 0),", "world World", "truth",
            "resemble the query no more than the others"),
    Mistake("beyond_answers", "target=y[-1],", "target=5, answers=jnp.eye(3),", "world World", "truth", "the target is 5, but the world has 3 answers",
            "from 0 to 2"),
    Mistake("answers_drawn", "target=y[-1],", "target=jnp.array(1), answers=drawn[:3, :3],", "world World", "truth", "`answers` differs between prompts",
            "belongs to the world"),
    Mistake("nothing_present", "jnp.arange(self.longest) < self.length", "jnp.arange(self.longest) < self.length - 6", "world World", "truth",
            "all contexts of a prompt are absent"),
    Mistake("padding_elsewhere", "    length: int = 6\n", "    length: int = 5\n    padding = Padding(in_front=True)\n", "world World", "truth",
            "`padding` says that tokens are absent in front", "remove `padding`"),
    Mistake("padding_uneven", "    longest: int = static(6)\n", "    longest: int = static(6)\n    padding = Padding(together=4)\n", "world World", "truth",
            "`padding` is anywhere, 4 at a time, but there are 6 contexts", "divide into groups"),
    Mistake("counts_places", "scores = tokens[:-1]", "scores = jnp.arange(len(tokens) - 1) * tokens[:-1, 0] + tokens[:-1]", "model AttentionSettings", "padding",
            "padding leaks", "Padding(in_front=True)"),
    Mistake("no_trace", 'return output, {"scores": scores}', "return output", "model AttentionSettings", "shapes", "not a pair", "(output, trace)"),
    Mistake("vector_output", 'return output, {"scores": scores}', 'return scores, {"scores": scores}', "model AttentionSettings", "shapes",
            "not one finite number", "hinge and regression need one number"),
    Mistake("integer_weights", "return Attention(self.scale * jax.random.normal(key, (world.columns, world.columns)))",
            "return Attention(jnp.ones((world.columns, world.columns), int))", "model AttentionSettings", "initialisation", "not an array of floats", "static"),
    Mistake("random_weights", "jax.random.normal(key, (world.columns, world.columns))", "np.random.standard_normal((world.columns, world.columns)) + jnp.zeros(1)",
            "model AttentionSettings", "initialisation", "two different initialisations", "from `key`"),
    Mistake("reads_target", "output = scores @", "output = prompt.target + scores @", "model AttentionSettings", "truth", "the model looks at the truth",
            "prompt.tokens()"),
    Mistake("ignores_mask", "tokens = jnp.where(prompt.present[:, None], prompt.tokens(), 0.0)", "tokens = prompt.tokens()",
            "model AttentionSettings", "masks", "the model ignores the mask", "prompt.present"),
    Mistake("divides_by_length", "jnp.sum(prompt.present[:-1])", "len(tokens)", "model AttentionSettings", "padding", "padding leaks",
            "jnp.sum(prompt.present)"),
    Mistake("nan_gradient", "output = scores @", "output = 0.0 * jnp.sqrt(jnp.sum(jnp.abs(scores * 0.0))) + scores @", "model AttentionSettings", "gradients",
            "the gradient of weights is not finite", "Norms and square roots at 0"),
    Mistake("no_gradient", "self.weights @ tokens[-1]", "jax.lax.stop_gradient(self.weights) @ tokens[-1]", "model AttentionSettings", "gradients",
            "every gradient is zero"),
    Mistake("wrong_sign", "(output - prompt.target) ** 2)", "-((output - prompt.target) ** 2))", "loss distance", "values", "higher at the right answers"),
    Mistake("unnamed_axis", '"scores@context"', '"scores"', "probe observe", "values", "'scores' names 0 axes, but its array has 1", "share@neuron"),
    Mistake("observer_not_a_mapping", "return expect(probe, model, member.world, key, 1, batch=8)", "return model.weights", "probe observe", "values",
            "it returned", "dictionary of named arrays"),
    Mistake("probe_sees_padding", '"output": output', '"output": output, "size": jnp.sum(prompt.tokens() ** 2)', "probe probe", "padding",
            "size changes with the content of absent tokens", "prompt.present"),
    Mistake("random_experiment", "world = World(noise=lab.settings.noise)", "world = World(noise=np.random.random())", "experiment experiment", "results",
            "two runs of it request different trainings", "no clock"),
    Mistake("no_seed", 'lab.evaluate(trained, "test", probe, world, prompts=250)', 'lab.evaluate(trained, "test", probe, world, prompts=250).mean("seed")',
            "experiment experiment", "results", "dimension seed", "over seeds"),
    Mistake("two_dimensions", 'measured("experiment", "output")', 'measured("experiment", "scores")', "statement two_dimensions/small", "values",
            "also has the dimensions context (6)"),
    Mistake("misspelt", 'measured("experiment", "output")', 'measured("experiment", "outptu")', "statement misspelt/small", "values",
            "'experiment' has no 'outptu'. Did you mean 'output'?"),
    Mistake("not_an_array", 'measured("experiment", "output")', 'apply(float, measured("experiment", "output").max(["setting", "seed"]))',
            "statement not_an_array/small", "values", "must be an xarray DataArray, not float"),
    Mistake("function_fails", 'measured("experiment", "output")', 'apply(lambda x: x.nothing, measured("experiment", "output"))',
            "statement function_fails/small", "values", "has no attribute 'nothing'"),
    Mistake("settings_not_frozen", "@dataclasses.dataclass(frozen=True)", "@dataclasses.dataclass", "settings", "names", "Settings is not frozen", "frozen=True"),
)  # fmt: skip
