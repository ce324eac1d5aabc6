"""Token mixers against the plain PyTorch references of flash-linear-attention (`fla-core`), where it is installed.

Only files of references are loaded, each by its path: the package itself asks for a GPU's compiler.
"""

import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iclab.models.mechanisms import Weights, decay_and_gate, steps_of, unit
from iclab.models.recurrences import along, everywhere
from iclab.models.zoo import MECHANISMS

FLA = importlib.util.find_spec("fla")
if FLA is None or not FLA.submodule_search_locations:
    pytest.skip("fla-core is not installed", allow_module_level=True)
torch = pytest.importorskip("torch", reason="the references are in PyTorch")
pytest.importorskip("einops", reason="the references use einops")

TOKENS, STATE, WIDTH, COLUMNS = 70, 6, 3, 8
FLOAT32 = 2e-5  # of the largest output: the references round to float32


def reference(folder, name):
    """A function of fla/ops/<folder>/naive.py."""
    path = pathlib.Path(FLA.submodule_search_locations[0], "ops", folder, "naive.py")
    if not path.exists():
        pytest.skip(f"this version of fla-core has no {path.name} of {folder}")
    spec = importlib.util.spec_from_file_location(f"fla_{folder.replace('/', '_')}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def by_token(*arrays):
    """Batch, tokens, one head."""
    return [torch.tensor(np.asarray(array))[None, :, None] for array in arrays]


def by_head(*arrays):
    """Batch, one head, tokens."""
    return [torch.tensor(np.asarray(array))[None, None] for array in arrays]


def theirs(name, keys, queries, values, log_decay, gate, rates, removal):
    """What the reference makes of these keys, values, decays and gates; queries are not scaled."""
    scaled = queries * STATE**0.5  # where the reference divides by it and cannot be told otherwise
    gated = keys * gate[:, None]
    if name == "linear":
        run = reference("linear_attn", "naive_recurrent_linear_attn")
        return run(*by_token(queries, keys, values), scale=1.0)[0][0, :, 0]
    if name == "retnet":
        return reference("retention", "naive_retention")(*by_head(scaled, keys, values))[0, 0]
    if name == "gla":
        return reference("gla", "naive_recurrent_gla")(*by_token(scaled, keys, values, log_decay))[0][0, :, 0]
    if name in ("mamba", "mamba2"):
        run = reference("simple_gla", "naive_recurrent_simple_gla")
        return run(*by_token(queries, gated, values, log_decay), scale=1.0)[0][0, :, 0]
    if name == "deltanet":
        return reference("delta_rule", "delta_rule_recurrence")(*by_head(scaled, unit(keys), values, gate))[0][0, 0]
    if name == "gated-delta":
        run = reference("gated_delta_rule", "naive_recurrent_gated_delta_rule")
        return run(*by_token(queries, unit(keys), values, gate, log_decay), scale=1.0)[0][0, :, 0]
    run = reference("generalized_delta_rule/dplr", "dplr_recurrence")
    given = by_head(scaled, rates * keys, values, removal, -rates * removal, log_decay)
    return run(*[array.float() for array in given])[0][0, 0]


@pytest.mark.parametrize("name", sorted(set(MECHANISMS) - {"softmax"}))
def test_a_mixer_is_that_of_flash_linear_attention(name):
    drawn, mechanism = np.random.default_rng(1), MECHANISMS[name]
    with jax.enable_x64(True):
        tokens, values = drawn.normal(size=(TOKENS, COLUMNS)), drawn.normal(size=(TOKENS, WIDTH))
        key_weights, query_weights = drawn.normal(size=(2, STATE, COLUMNS)) / COLUMNS**0.5
        rows = (STATE, COLUMNS) if mechanism.by_coordinate else (COLUMNS,)
        general = mechanism.delta == "general"
        weights = Weights(
            jnp.asarray(drawn.normal(size=rows)), jnp.asarray(0.3) if mechanism.decay == "rate" else None,
            jnp.asarray(drawn.normal(size=(STATE, COLUMNS) if general else (COLUMNS,))),
            jnp.asarray(drawn.normal(size=STATE)),
        )  # fmt: skip
        present, read = jnp.ones(TOKENS, bool), lambda w: jnp.asarray(tokens) @ w.T
        keys, queries = jnp.asarray(tokens @ key_weights.T), jnp.asarray(tokens @ query_weights.T)
        log_decay, gate = decay_and_gate(mechanism, weights, present, read)
        steps = steps_of(mechanism, weights, keys, log_decay, gate, present, read)
        rates = jax.nn.sigmoid(read(weights.gate)) if general else None
        removal = unit(keys * weights.removal) if general else None
        expected = np.asarray(theirs(name, keys, queries, values, log_decay, gate, rates, removal), float)
        for form in (along, everywhere):
            # The last token is the query, which erases nothing here.
            found = np.asarray(form(steps, jnp.asarray(values), queries))[:-1]
            largest = np.abs(found - expected[:-1]).max() / np.abs(expected).max()
            print(f"{name}, {form.__name__}: {largest:.1e}")  # shown by pytest -s
            assert largest < FLOAT32, (form.__name__, largest)
