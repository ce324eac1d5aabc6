"""The bench: what is counted, that the peers train the same thing, and that a slower ratio is found."""

import numpy as np
import pytest

from iclab import ensemble
from iclab.bench import measure, peers, table
from iclab.bench.cases import CASES
from iclab.errors import InputError
from iclab.training import train
from marks import mostly_slow

MIXED = ("retnet", "gla", "mamba2", "deltanet", "gated-delta", "rwkv7", "softmax-mixer", "gru")


def test_least_arithmetic_of_a_softmax_step_is_22_megaflop():
    assert np.isclose(CASES["softmax"].flop, 22e6, rtol=0.01)


@pytest.mark.parametrize(
    "name, steps",
    mostly_slow(
        [("softmax", 60), ("mamba", 60), ("linear", 60), ("chain", 150), ("residual", 20), *((n, 30) for n in MIXED)],
        kept=("softmax", "residual", "gated-delta"),
    ),
)
def test_a_peer_trains_the_same_model_on_the_same_prompts(name, steps):
    """Their mean losses over a stretch of training agree with ours: same data, same model, same step size, other
    seeds.
    """
    pytest.importorskip("torch")
    step = peers.eager(name)
    theirs = np.array([float(step()) for _ in range(steps)])
    case = CASES[name]
    _, records = train(case.members(4), case.loss, [steps // 2, steps])
    ours = records["training_loss"]
    for half, part in enumerate((theirs[: steps // 2], theirs[steps // 2 :])):
        spread = 4 * ours[:, half].std(ddof=1) + 0.1 * ours[:, half].mean()
        assert abs(part.mean() - ours[:, half].mean()) < spread, (part.mean(), ours[:, half])
    assert theirs[-5:].mean() < theirs[:5].mean()


def test_an_ensemble_of_peers_takes_the_steps_of_a_peer(monkeypatch):
    """Uncompiled, with one member, the same weights and the same draws."""
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch, "compile", lambda **options: lambda function: function)
    for name in ("softmax", "mamba", "chain", "residual", "gla", "gated-delta", "rwkv7"):
        alone, several = peers.eager(name), peers.compiled(name, 1)
        losses = []
        for step in (alone, several):
            torch.manual_seed(1)
            losses.append([float(step().mean()) for _ in range(3)])
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    for name in ("linear", "retnet", "gru"):
        losses = [peers.compiled(name, 2)() for _ in range(2)]
        assert losses[0].shape == (2,) and torch.isfinite(losses[0]).all()


def test_a_peer_that_cannot_be_measured_is_left_out_and_the_others_are_kept(monkeypatch):
    def measured(case, *more):
        if "compiled" in more:
            raise InputError("the compiler\nis missing")
        return {"rate": 7.0}

    said = []
    monkeypatch.setattr(table, "_measured", measured)
    found = table._peers(["gla"], "2 x cpu", 64, said.append)
    assert found == {"eager_rate": 7.0, "compiled_rate": None, "compiled_members": None}
    assert said == [f"  without compiled --members {n}: is missing" for n in table.ON_CPU]


def test_the_rates_of_a_case_are_a_line():
    case = {"rate": 1000.0, "eager_rate": 250.0, "compiled_rate": None}
    assert table._rates(case) == "1,000 model-steps/s, eager PyTorch 250 (4.0 times)"


def test_ours_counts_model_steps_of_all_members():
    found = measure.ours(CASES["linear"], 0.05, members=3)
    assert found["members"] == 3 and found["rate"] > 0 and found["peak_bytes"] > 0
    assert ensemble.size(CASES["linear"].members(3)) == 3


def test_ratios_are_compared_not_seconds():
    def run(rate, ratio, share):
        return {"cases": {"softmax": {"rate": rate, "eager_ratio": ratio, "matrix_share": share}}}

    before = run(1000.0, 10.0, 0.5)
    assert table.regressions(run(10.0, 9.0, 0.45), before) == []  # a slow machine is not a regression
    assert table.regressions(run(9999.0, 5.0, 0.5), before) == ["softmax: 5 times eager PyTorch, 10 before"]
    assert table.regressions(run(1000.0, None, 0.2), before) == ["softmax: 0.2 of the matrix-product rate, 0.5 before"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seconds", "0"], "--seconds is 0.0; it must be positive."),
        (["--members", "0"], "--members is 0; at least one model is needed."),
        (["--out", "nowhere/bench.json"], "there is no folder nowhere."),
        (["--out", "."], "--out . is a folder; give the name of a file."),
        (["--against", "none.json"], "none.json does not exist; write it with"),
        (["--against", "other.json"], "other.json is not a file that `iclab bench --out` wrote."),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_measured(arguments, sentence, monkeypatch, tmp_path, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.json").write_text('{"cases": {"softmax": {}}}')
    monkeypatch.setattr(table, "measure", None)
    status, _, err = command("bench", *arguments)
    assert status == 2 and sentence in err


def test_an_unknown_case_is_named_before_anything_runs():
    with pytest.raises(InputError, match="there is no case rnn; the cases are softmax, linear"):
        table.measure(["rnn"], 1.0, None, False, print)
