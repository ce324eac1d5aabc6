"""What `iclab theory` shows, and how it answers bad input."""

import pytest

from iclab.cli.console import OUT
from iclab.library import theorems


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_the_command_shows_every_theorem_with_conditions_and_rates(monkeypatch, profile, command):
    monkeypatch.setattr(OUT, "_width", 100)
    status, out, _ = command("theory", "--profile", profile)
    assert status == 0 and max(map(len, out.splitlines())) <= 100
    for theorem in theorems([]):
        assert f"{theorem.id}  {theorem.source[:20]}" in out
    assert "(iv) iterations" in out and "M1:1, α:−2/3, β:−2/3" in out and "Hidden constants in Ω, O, Θ: 1." in out


def test_the_command_takes_ids_settings_symbols_and_the_constant(monkeypatch, command):
    monkeypatch.setattr(OUT, "_width", 140)
    _, out, _ = command(
        "theory", "nonlinear-icl/thm3.3", "--set", "neurons=10", "--set", "error=0.5", "--constant", "2"
    )
    assert "fails by 12.9×" in out and "ε = 0.5" in out and "thm3.4" not in out  # 2 · 36 log 6 / 10
    _, out, _ = command("theory", "mamba-outliers/thm")
    assert [name for name in ("thm1", "thm2", "thm3", "thm4", "cor1") if f"mamba-outliers/{name} " in out] == [
        "thm1", "thm2", "thm3", "thm4",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["nonlinear-icl/thm3.33"],
            "no paper or theorem is called 'nonlinear-icl/thm3.33'. Did you mean 'nonlinear-icl/thm3.3'?",
        ),
        (["--profile", "quik"], "profile 'quik' is unknown. Did you mean 'quick'?"),
        (["nonlinear-icl", "--set", "neuron=3"], "there is no such setting in nonlinear-icl. Did you mean 'neurons'?"),
        (["nonlinear-icl", "--set", "error=much"], "--set error=much: error takes a number."),
        (["nonlinear-icl", "--set", "error=2"], "error is 2.0; it must lie in (0, 1)."),
        (["nonlinear-icl", "--set", "error=nan"], "the value must be finite"),
        (["nonlinear-icl", "--set", "neurons"], "write it as name=value"),
        (["nonlinear-icl", "--constant", "0"], "--constant is 0.0; it must be positive and finite."),
        (["nonlinear-icl", "--set", "matching_fraction=2"], "a fraction must lie in (0, 1]"),
    ],
)
def test_bad_input_is_answered_in_one_sentence(arguments, sentence, command):
    status, _, err = command("theory", *arguments)
    assert status == 2 and sentence in err and "Traceback" not in err
