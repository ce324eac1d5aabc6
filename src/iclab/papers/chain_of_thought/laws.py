"""The rates of chain-of-thought: iterations (18) in α, η, M, K and ε, stages of training, examples needed (23), (25).

Iterations are needed until the training loss (on fresh prompts) stays below ε. (18) is a sum, whose slope in a setting
is none of its powers, and each of its terms hides a constant: what is judged is what was needed over the sum with these
constants, one set for all sweeps, at the same setting and ε. It must not grow.
Stage 1 ends when the attention looks at columns of the query's step only, stage 2 when it looks at the query's step and
pattern, on fresh prompts made like the training ones. The theorems say what suffices: each law is an upper bound.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.optimize
import xarray as xr

from iclab.authoring import Criterion, Expression, Law, Part, Scaling, apply, measured
from iclab.papers.chain_of_thought import theory
from iclab.statistics import first_passage

TRAINED_FRACTIONS = (0.1, 0.125, 0.2, 0.4)  # α
STEP_SIZES = (0.225, 0.4, 0.6, 0.9)  # η
PATTERNS = (5, 8, 12, 20)  # M; with 5 and K = 3 a pattern comes twice, which is not judged
STEPS = (2, 3, 4, 8)  # K; with 8 and M = 8 too
ERRORS = (0.1, 0.05, 0.025, 0.0125)  # ε: the loss that is asked for
STEP_ERRORS = (0.2, 0.1, 0.05, 0.025)  # ε of (35): the attention on other steps that is allowed
ATTENTION_ERRORS = (0.2, 0.14, 0.1, 0.07, 0.05)  # ε of (10): the attention elsewhere that is allowed
EDGE = (0.4, 0.2, 0.1, 0.07)  # ε for which (17), (18) and (iii) are met with constants near 1
FRACTIONS = (0.2, 0.4, 0.6, 0.8)  # α' of Figs. 2A and 3A
TRAJECTORIES = (0.1, 0.25, 0.4, 0.55)  # τ of Fig. 2B, at ρ = 0.8
PRIMACIES = (0.75, 0.8, 0.85, 0.95)  # ρ of Fig. 2C, at τ = 0.5
OUTPUT = (0.5, 0.5)  # (τ_o, ρ_o) of Fig. 3 where not varied
OUTPUTS = (0.3, 0.4, 0.5, 0.6)  # τ_o of Fig. 3B
OUTPUT_PRIMACIES = (0.3, 0.45, 0.6, 0.75)  # ρ_o of Fig. 3C
COMPARISON = (0.4, 0.1)  # (τ_o, ρ_o) of Fig. 4
STAGE = {
    f"attention there above {share:g} for good": Criterion(share, above=True, window=3, interpolate=True)
    for share in (0.9, 0.75, 0.95)
}
NEEDED = {f"error below {error:g}": Criterion(error, interpolate=True) for error in (0.1, 0.2, 0.05)}


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Short trainings at several values of a setting: where they are found, and how the theorems call it."""

    experiment: str
    dim: str
    letter: str  # in theory.Symbols
    symbol: str
    towards: str


TERMS = (theory.first_stage, theory.second_stage, theory.last_stage)  # of (18)
SWEEPS = (
    Sweep("rate-fraction", "fraction", "matching_fraction", "α", "small"),
    Sweep("rate-patterns", "patterns", "patterns", "M", "large"),
    Sweep("rate-steps", "steps", "reasoning_steps", "K", "large"),
    Sweep("rate-size", "size", "step_size", "η", "small"),
)


def needed(curve: xr.DataArray, dim: str, errors: Sequence[float] = ERRORS, *, above: bool = False) -> xr.DataArray:
    """Iterations until a curve stays below ε (`above`: above 1 - ε), for every ε along a new dimension `dim`."""
    curve = curve.isel(step=np.flatnonzero(curve["step"].values > 0))  # no training loss before the first step
    found = [
        first_passage(curve, "step", Criterion(1 - error if above else error, above=above, window=3, interpolate=True))
        for error in errors
    ]
    return xr.concat(found, xr.Variable(dim, list(errors))).assign_attrs(found[0].attrs)


def over(
    times: xr.DataArray, dim: str, letter: str, at: theory.Symbols, law: theory.Law, error: float | None = None
) -> xr.DataArray:
    """What was needed over what a rate says at the same settings: its hidden constant. ε is `error`, or the label of
    the times.
    """
    fixed = {} if letter == "error" else {"error": float(times["error"]) if error is None else error}
    values = [float(value) for value in times[dim].values]
    stated = np.array([law(dataclasses.replace(at, **fixed, **{letter: value})).value for value in values])
    found = times / xr.DataArray(stated, dims=dim, coords={dim: times[dim]})
    # A censored time lies beyond the run's end, so its quotient lies at least beyond this.
    return found.assign_attrs({key: float(end) / stated.max() for key, end in times.attrs.items()})


def distinct(at: theory.Symbols) -> bool:
    """Whether no pattern comes twice in a reasoning: step k goes k places on, so that it is at place k(k+1)/2 mod M."""
    steps = int(at.reasoning_steps)
    return len({k * (k + 1) // 2 % int(at.patterns) for k in range(steps + 1)}) == steps + 1


def regular(data: xr.DataArray, sweep: Sweep, at: theory.Symbols) -> xr.DataArray:
    """The values of a sweep at which no pattern comes twice; all where none is left."""
    values = [float(value) for value in data[sweep.dim].values]
    kept = [row for row, value in enumerate(values) if distinct(dataclasses.replace(at, **{sweep.letter: value}))]
    return data.isel({sweep.dim: kept}) if kept else data


def term_by_term(
    curves: Sequence[xr.DataArray], sweeps: Sequence[Sweep], at: Sequence[theory.Symbols]
) -> tuple[list[xr.DataArray], tuple[float, ...]]:
    """Iterations over (18) whose three terms have constants of their own, the same in all sweeps: along each of them
    the largest quotient over ε; and these constants, which are those of the smallest squared relative error that are
    not negative.
    """
    asked = [
        (needed(regular(curve, sweep, there), "error").transpose("error", sweep.dim, "seed"), sweep.dim, sweep, there)
        for curve, sweep, there in zip(curves, sweeps, at, strict=True)
    ]
    terms, shares = [], []
    for times, dim, sweep, there in asked:
        own = np.empty((times.sizes["error"], times.sizes[dim], len(TERMS)))
        for row, error in enumerate(times["error"].values):
            for column, value in enumerate(times[dim].values):
                point = dataclasses.replace(there, error=float(error), **{sweep.letter: float(value)})
                own[row, column] = [law(point).value for law in TERMS]
        reached = np.isfinite(times.values).any(axis=2)
        means = np.array([numbers[np.isfinite(numbers)].mean() for numbers in times.values[reached]])
        shares.append(own[reached] / means.reshape(-1, 1))
        terms.append(own)
    whole = np.concatenate(shares)
    constants = scipy.optimize.nnls(whole, np.ones(len(whole)))[0] if len(whole) else np.ones(len(TERMS))
    found = []
    for (times, dim, _, _), own in zip(asked, terms, strict=True):
        stated = xr.DataArray(own @ constants, dims=("error", dim), coords={"error": times["error"], dim: times[dim]})
        quotient: xr.DataArray = (times / stated).max("error", skipna=False)
        ends = {key: float(end) / float(stated.max()) for key, end in times.attrs.items()}
        found.append(quotient.assign_attrs(ends))
    return found, tuple(float(constant) for constant in constants)


def over_terms(which: int, at: Sequence[theory.Symbols], *curves: xr.DataArray) -> xr.DataArray:
    """Iterations over (18) with a constant in each term, along one of `SWEEPS`: the largest quotient over ε."""
    return term_by_term(curves, SWEEPS, at)[0][which]


def largest_constant(at: Sequence[theory.Symbols], *curves: xr.DataArray) -> xr.DataArray:
    """The largest constant that a term of (18) needs."""
    return xr.DataArray(max(term_by_term(curves, SWEEPS, at)[1]))


def attention_by_error(target: xr.DataArray, power: float = 1.0) -> xr.DataArray:
    """Iterations until a power of the attention elsewhere stays below ε, by ε."""
    times = needed(target, "epsilon", ATTENTION_ERRORS, above=True)
    return times.assign_coords(epsilon=[error**power for error in ATTENTION_ERRORS])


def swept_at(wide: theory.Symbols, small: theory.Symbols) -> tuple[theory.Symbols, ...]:
    """Where each of `SWEEPS` was trained: in α with the paper's M."""
    return tuple(wide if sweep.symbol == "α" else small for sweep in SWEEPS)


def stated_part(which: int, at: tuple[theory.Symbols, ...]) -> Part:
    """Iterations over (18) do not grow along a sweep, at the ε where they grow most."""
    sweep, curves = SWEEPS[which], [measured(sweep.experiment, "training_loss") for sweep in SWEEPS]
    part = Part(
        f"iterations over (18), in {sweep.symbol}", apply(over_terms, which, at, *curves),
        Scaling(sweep.dim, 0.0, sweep.symbol, towards=sweep.towards),
    )  # fmt: skip
    if which:
        return part
    return dataclasses.replace(
        part, found=apply(largest_constant, at, *curves), found_as="constants up to {:.2g} in (18)"
    )


def stage_one(sweep: Sweep, at: theory.Symbols, errors: Sequence[float] = STEP_ERRORS[:3]) -> Expression:
    """Iterations until the attention on other steps stays below ε, over (34): the largest over ε."""

    def largest(right_step: xr.DataArray) -> xr.DataArray:
        times = needed(regular(right_step, sweep, at), "error", errors, above=True)
        found = [over(times.sel(error=e), sweep.dim, sweep.letter, at, theory.first_stage_of_lemmas) for e in errors]
        whole: xr.DataArray = xr.concat(found, "error", coords="minimal", compat="override").max("error", skipna=False)
        return whole.assign_attrs(found[0].attrs)

    return apply(largest, measured(sweep.experiment, "right_step"))


def _stage(number: int, setting: str, values: tuple[float, ...], symbol: str, exponent: float, **rivals: float) -> Law:
    """When a stage of training ends, counted from step 0. The hidden constant is fitted without the hardest value."""
    law = Law(f"rate-{setting}", setting, values, symbol, exponent, on=values[:-1], criteria=STAGE, rivals=rivals)
    law = dataclasses.replace(law, variable=("right_step", "right_column")[number - 1], what=f"end of stage {number}")
    return dataclasses.replace(law, on=values[1:], towards="small") if exponent < 0 else law


def _examples(experiment: str, varied: dict[str, tuple[float, ...]], fine: str = "") -> dict[str, Law]:
    """Examples that CoT or ICL needs, by panel; (63) and (83) also allow a power -1 in α' and τ (Chernoff)."""
    law = Law(experiment, "", (), "", -2.0, (), towards="small", criteria=NEEDED, along="length", what="examples")
    found = {}
    for panel, (symbol, values) in zip("ABC", varied.items(), strict=True):
        own = dataclasses.replace(law, values=values, symbol=symbol, on=values[2:], variable=f"error_{panel}")
        rivals = {} if panel == "C" else {f"{symbol}⁻¹": -1.0}
        along = f"length_{panel}" if panel == fine else "length"
        found[panel] = dataclasses.replace(own, dim=f"value_{panel}", rivals=rivals, along=along)
    return found


STAGES = {
    "first stage in α": _stage(1, "fraction", TRAINED_FRACTIONS, "α", -1.0, **{"α⁻², Lemmas F.5 to F.7": -2.0}),
    "first stage in K": _stage(1, "steps", STEPS, "K", 3.0, **{"K": 1.0, "K²": 2.0}),
    "second stage in α": _stage(2, "fraction", TRAINED_FRACTIONS, "α", -1.0, **{"α⁻²": -2.0}),
    "second stage in M": _stage(2, "patterns", PATTERNS, "M", 1.0, **{"no dependence": 0.0}),
    "second stage in K": _stage(2, "steps", STEPS, "K", 1.0, **{"K³": 3.0}),
}
CHAINS = _examples("chains", {"α'": FRACTIONS, "τ": TRAJECTORIES, "ρ": PRIMACIES}, fine="C")
DIRECT = _examples("direct", {"α'": FRACTIONS, "τ_o": OUTPUTS, "ρ_o": OUTPUT_PRIMACIES})
