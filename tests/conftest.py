"""Shared by all tests. Shapes in signatures are checked (jaxtyping + beartype), and warnings are errors."""

import functools
import os
import sys

import pytest
from jaxtyping import install_import_hook

os.environ.setdefault("MPLBACKEND", "agg")
# Programs here run for milliseconds: compiling them less well saves half of the time.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=1 --xla_cpu_use_fusion_emitters=false")

SHAPED = "ensemble evaluation inference losses models patterns probes prompts randomness statistics training worlds"
install_import_hook([f"iclab.{name}" for name in SHAPED.split()], "typecheck.check")  # the others are mypy's

import equinox as eqx  # noqa: E402
import jax  # noqa: E402
import numpy as np  # noqa: E402

from iclab import cli, devices, memory  # noqa: E402
from iclab.models.chain_transformer import ChainTransformer, SeparateChainTransformer  # noqa: E402
from iclab.models.gpt2 import GPT2  # noqa: E402
from iclab.models.linear_transformer import LinearTransformer  # noqa: E402
from iclab.models.mamba import Mamba  # noqa: E402
from iclab.models.residual_transformer import ResidualTransformer  # noqa: E402
from iclab.models.softmax_transformer import SoftmaxTransformer  # noqa: E402
from iclab.worlds.classification import Classification  # noqa: E402
from iclab.worlds.concepts import Concepts  # noqa: E402
from iclab.worlds.markov import Markov  # noqa: E402
from iclab.worlds.reasoning import Reasoning  # noqa: E402
from iclab.worlds.recall import Recall  # noqa: E402
from iclab.worlds.regression import Regression  # noqa: E402

WORLDS = Classification, Concepts, Markov, Reasoning, Recall, Regression
MODELS = (
    ChainTransformer, SeparateChainTransformer, GPT2, LinearTransformer, Mamba, ResidualTransformer, SoftmaxTransformer
)  # fmt: skip
devices.use_all_cores()


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also long tests, and long forms of others (make test-slow)")


def pytest_collection_modifyitems(config, items):
    """Tests marked slow run with --slow only. Of each kind a few others stay, so that CI sees every code path."""
    if config.getoption("--slow"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    config.hook.pytest_deselected(items=slow)
    items[:] = [item for item in items if item not in slow]


@pytest.fixture(autouse=True, scope="session")
def compiled_programs(tmp_path_factory):
    """Programs compiled by one test are there for the next, also where a test starts a process of its own."""
    folder = str(tmp_path_factory.mktemp("compiled"))
    os.environ["ICLAB_CACHE"] = folder
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


@pytest.fixture(scope="session")
def run(tmp_path_factory, compiled_programs):
    """Every experiment, statement and figure of every paper that trains, two seeds, most numbers made up."""
    import folders

    place = tmp_path_factory.mktemp("runs") / "all"
    return folders.smoke(place, *folders.TRAINING, "--save-models", starter=folders.PRETENDED)


@pytest.fixture(scope="session")
def computed_run(request, tmp_path_factory, compiled_programs):
    """The same with every number computed: two seeds, a few steps."""
    import folders

    if not request.config.getoption("--slow"):
        pytest.skip("--slow only: compiling everything takes ten minutes")
    return folders.smoke(tmp_path_factory.mktemp("runs") / "computed")


@pytest.fixture(autouse=True, scope="module")
def not_too_many_programs():
    """Compiled programs are let go when there are many."""
    yield
    if memory.crowded():
        jax.clear_caches()


def _compiled(method):
    """The method as one program where it is called with numbers: operation by operation, each would be compiled."""
    program = eqx.filter_jit(method)

    @functools.wraps(method)
    def called(*arguments):
        leaves = jax.tree.leaves(arguments)
        if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            return method(*arguments)
        return program(*(np.asarray(one) if isinstance(one, int) else one for one in arguments))

    return called


@pytest.fixture(autouse=True, scope="session")
def worlds_and_models_are_compiled():
    """As in every training."""
    for kinds, name in ((WORLDS, "sample"), (MODELS, "__call__")):
        for kind in kinds:
            setattr(kind, name, _compiled(getattr(kind, name)))


@pytest.fixture
def command(monkeypatch, capsys):
    """`command("list", "nonlinear-icl")` is that command, in this process: its status, what it prints and what it
    complains.
    """

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["iclab", *map(str, arguments)])
        status = 0
        try:
            cli.main()
        except SystemExit as stop:
            status = stop.code or 0
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run
