"""The claims of language-model: what the papers' theories say of language models, asked of one.

Intervals are over prompts. A rule is the paper's own where it gives a number or a direction; margins of ours stand in
`unstated`.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from iclab.claims import Check, Claim, Results, above, below, note
from iclab.language.words import LABEL_TASKS, TWO_STEP_TASKS
from iclab.papers.language_model.controls import NOTHING, USED
from iclab.papers.language_model.labels import RULES, TRIGGER
from iclab.papers.language_model.settings import Settings, unstated

PAPER = "language-model"
UNIT, SIGNED = (0.0, 1.0), (-1.0, 1.0)
FIGURE_TASK = "country-capital"  # the task of Fig. 1 (a), (b)
LITTLE = 0.1  # accuracy that is lost where a paper says that none is
SCOUTED = "Before the rule was written two or three test prompts per task had been run to see that the code works, and on held-out examples"
MORE = "Runs with 32 and 40 prompts per task were inconclusive in most of these rows; now all 60 queries are asked."
AFTERWARDS = {
    "fig1*": f"{SCOUTED} few-shot accuracy by separator and the cosines of Fig. 1 at every layer. ‘x + o = y’ was seen to fail there as it "
    "stands, so rows that ask for its direction only were added beside it.",
    "fig1-static": "The check on the offset put into the model was added after the first run of the others.",
    "beyond-attention*": f"{SCOUTED} few-shot accuracy with 8 and 16 demonstrations. The "
    "first run chose the head on 8 held-out queries and found 0.51 and 0.84; now on 16, because 8 are few to choose among 270 heads by. "
    "It had 32 prompts per task; now 24, to save time.",
    "beyond-pruning*": f"{SCOUTED} accuracy with 10 and 30 % of the neurons gone, which is why the rates are small.",
    "beyond-outliers*": f"{SCOUTED} few-shot accuracy with 8 and 16 demonstrations, no outliers. {MORE}",
    "beyond-steps*": f"{SCOUTED} accuracy with and without steps, no errors, with 6 and 10 demonstrations.",
    "beyond-interventions": "Chosen after the interventions had been run on two held-out prompts per task.",
}
RULE_WORDS = {"flip": "flipped labels", "target": "one target label", "random": "random labels"}
TASK_WORDS = {"sentiment": "labels with a meaning (sentiment)", "animal-thing": "labels without a meaning (animal or thing)"}


def pooled(data: xr.DataArray) -> xr.DataArray:
    """One number per prompt, prompts of all tasks together."""
    rest = [dim for dim in data.dims if dim in ("task", "prompt")]
    values = data.transpose(*rest).values.reshape(-1)
    return xr.DataArray(values, dims="prompt")


def _vectors(results: Results) -> xr.Dataset:
    return results["task-vectors"]


def _place(results: Results, mode: str) -> int:
    return int(_vectors(results)["chosen"].sel(mode=mode))


def _patched(results: Results, mode: str, name: str = "right") -> xr.DataArray:
    return _vectors(results)[f"patched_{name}"].sel(mode=mode, place=_place(results, mode))


def _context(results: Results, which: str, name: str = "right") -> xr.DataArray:
    return _vectors(results)[name].sel(context=which)


def _control(results: Results, mode: str, vector: str) -> xr.DataArray:
    return _vectors(results)["control_right"].sel(mode=mode, vector=vector)


def _cosine(results: Results, name: str, task: str | None) -> xr.DataArray:
    data = _vectors(results)["cosines"].sel(cosine=name).isel(every=int(_vectors(results)["geometry_place"]))
    return pooled(data.sel(task=task) if task else data)


def log_rank(data: xr.DataArray) -> xr.DataArray:
    """log10(1 + rank): 0 where the right answer is first."""
    return xr.apply_ufunc(np.log10, data + 1)


def _figure1(s: Settings) -> list[Claim]:
    rows = [
        Claim(
            f"{PAPER}/fig1-demonstrations", "vector-arithmetic, Figure 1: what it presupposes",
            "The model answers from the demonstrations: better with them than without, and than with the answers of other queries.",
            (
                Check("accuracy with demonstrations minus without", above(0),
                      lambda r: pooled(_context(r, "demonstrations") - _context(r, "none")), SIGNED),
                Check("accuracy with demonstrations minus with shuffled answers", above(0),
                      lambda r: pooled(_context(r, "demonstrations") - _context(r, "shuffled labels")), SIGNED),
            ),
            ("task-vectors",), "patching", unstated(s),
        ),
    ]  # fmt: skip
    for key, task, words in (
        ("", None, "all five word tasks"),
        ("-capital", FIGURE_TASK, "country and capital, as in Fig. 1(a, b)"),
    ):
        place = "x, y: the residual stream at a word alone on its line; coordinates centred and scaled; layer chosen on held-out pairs"
        rows += [
            Claim(
                f"{PAPER}/fig1-sum{key}", f"vector-arithmetic, Figure 1, {words}",
                "x + o = y, approximately: the query's vector plus the task vector is nearer to the answer's than the query's alone.",
                (
                    Check("cos(x+o, y) - cos(x, y)", above(0), lambda r, t=task: _cosine(r, "x+o, y", t) - _cosine(r, "x, y", t), (-2, 2)),
                    Check("cos(x+o, y) - cos(x+o', y), o' another task's vector", above(0),
                          lambda r, t=task: _cosine(r, "x+o, y", t) - _cosine(r, "x+other, y", t), (-2, 2)),
                ),
                ("task-vectors",), "fig1", (*unstated(s), place), words,
            ),
            Claim(
                f"{PAPER}/fig1-direction{key}", f"vector-arithmetic, Figure 1, up to the length of o, {words}",
                "From query to answer it goes along o: y - x points along the task vector, more than along another task's.",
                (
                    Check("cos(y-x, o)", above(0), lambda r, t=task: _cosine(r, "y-x, o", t), SIGNED),
                    Check("cos(y-x, o) - cos(y-x, o')", above(0), lambda r, t=task: _cosine(r, "y-x, o", t) - _cosine(r, "y-x, other", t), (-2, 2)),
                ),
                ("task-vectors",), "fig1", (*unstated(s), place), words,
            ),
            Claim(
                f"{PAPER}/fig1-alignment{key}", f"vector-arithmetic, Figure 1 and Section 1, {words}",
                "Answers align with the task vector more than queries do; queries contain little of it.",
                (
                    Check("cos(y, o) - cos(x, o)", above(0), lambda r, t=task: _cosine(r, "y, o", t) - _cosine(r, "x, o", t), (-2, 2)),
                    Check("|cos(x, o)|", below(0.2), lambda r, t=task: abs(_cosine(r, "x, o", t)), UNIT),
                ),
                ("task-vectors",), "fig1", (*unstated(s), place, "'little': below 0.2, twice the 0.1 of the paper's own model of words"), words,
            ),
        ]  # fmt: skip
    for mode, words in (("added", "added to the stream, as x + o"), ("replaced", "in the stream's stead (Hendel et al. 2023)")):
        rows.append(
            Claim(
                f"{PAPER}/fig1-{mode}", f"vector-arithmetic, Figure 1 and Proposition 3.3, the vector {words}",
                "The task vector of other prompts makes the model answer unseen queries without demonstrations, almost as with them.",
                (
                    Check("accuracy with the vector minus without", above(0),
                          lambda r, m=mode: pooled(_patched(r, m) - _context(r, "none")), SIGNED),
                    Check("the same, minus half of what demonstrations add", above(0),
                          lambda r, m=mode: pooled(_patched(r, m) - 0.5 * _context(r, "none") - 0.5 * _context(r, "demonstrations")), SIGNED),
                    Check("accuracy with the vector minus with another task's", above(0),
                          lambda r, m=mode: pooled(_patched(r, m) - _control(r, m, "other task")), SIGNED),
                    Check("accuracy with the vector minus with a random one of its length", above(0),
                          lambda r, m=mode: pooled(_patched(r, m) - _control(r, m, "random")), SIGNED),
                ),
                ("task-vectors",), "patching",
                (*unstated(s), "'almost': more than half of what demonstrations add; layer chosen on held-out queries"), words,
            )
        )  # fmt: skip
    rows.append(
        Claim(
            f"{PAPER}/fig1-static", "vector-arithmetic, Figure 1 and question 2: against static word vectors",
            "Adding the task vector inside the model ranks the right answer higher than the same arithmetic on static word vectors does.",
            (
                Check("log10 rank with static vectors minus with the task vector added", above(0),
                      lambda r: pooled(log_rank(_vectors(r)["static_rank"]) - log_rank(_patched(r, "added", "rank")))),
                Check("log10 rank without a vector minus with it", above(0),
                      lambda r: pooled(log_rank(_context(r, "none", "rank")) - log_rank(_patched(r, "added", "rank")))),
                Check("accuracy with the task vector minus with the static offset of words, both added at the same place", above(0),
                      lambda r: pooled(_patched(r, "added") - _control(r, "added", "static offset")), SIGNED),
            ),
            ("task-vectors",), "ranks",
            (*unstated(s), "static: input embeddings, the mean offset of 16 held-out pairs, cosine over the whole vocabulary without the query itself"),
        )
    )  # fmt: skip
    return rows


def _share(results: Results, task: str, order: str = "labels") -> xr.DataArray:
    return results["attention"]["head_share"].sel(task=task, order=order)


def _pruned(results: Results, order: str, rate: float) -> xr.DataArray:
    return results["pruning"]["right"].sel(order=order, rate=rate)


def _nonlinear(s: Settings) -> list[Claim]:
    beyond = "Beyond the paper: nonlinear-icl,"
    head = "one head of all, chosen on held-out queries; mass on whole demonstrations from the prompt's last token, as a share of that on all"
    rows = [
        Claim(
            f"{PAPER}/beyond-attention", f"{beyond} Corollary 4.3 asked of a language model",
            "The query attends to demonstrations with its own label more than to the others.",
            tuple(Check(f"share of attention on demonstrations with the query's label, {task}", above(0.5), lambda r, t=task: _share(r, t), UNIT)
                  for task in LABEL_TASKS),
            ("attention",), "attention", (*unstated(s), head),
        ),
        Claim(
            f"{PAPER}/beyond-attention-concentrated", f"{beyond} Corollary 4.3 and Figure 2(B), as strongly as there",
            "The attention concentrates on them: the share approaches 1.",
            tuple(Check(f"share of attention on demonstrations with the query's label, {task}", above(0.9), lambda r, t=task: _share(r, t), UNIT)
                  for task in LABEL_TASKS),
            ("attention",), "attention", (*unstated(s), head, "'approaches 1': above 0.9, as for Fig. 2(B)"),
        ),
    ]  # fmt: skip
    for score, words in (
        ("weights", "size: product of the norms of its weights"),
        ("activity", "size: mean |activation| times norm of its way out"),
    ):
        choice = (*unstated(s), f"{words}; normalisation gains not folded in; the same share in every block")
        rows += [
            Claim(
                f"{PAPER}/beyond-pruning-{score}", f"{beyond} Theorem 3.7 and Figure 5(A), {words}",
                "Removing the 15 % smallest MLP neurons hardly costs anything.",
                (Check("accuracy lost at rate 0.15, smallest first", below(LITTLE),
                       lambda r, k=score: pooled(_pruned(r, f"{k}, smallest", 0.0) - _pruned(r, f"{k}, smallest", 0.15)), SIGNED),),
                ("pruning",), "pruning", (*choice, f"'hardly': below {LITTLE:g}"), words,
            ),
            Claim(
                f"{PAPER}/beyond-pruning-{score}-order", f"{beyond} Theorem 3.7, {words}",
                "Removing large neurons costs more than removing as many small ones, and small ones less than any.",
                (
                    Check("accuracy without the 15 % smallest minus without the largest", above(0),
                          lambda r, k=score: pooled(_pruned(r, f"{k}, smallest", 0.15) - _pruned(r, f"{k}, largest", 0.15)), SIGNED),
                    Check("accuracy without the 15 % smallest minus without random ones", above(0),
                          lambda r, k=score: pooled(_pruned(r, f"{k}, smallest", 0.15) - _pruned(r, "random", 0.15)), SIGNED),
                ),
                ("pruning",), "pruning", choice, words,
            ),
        ]  # fmt: skip
    return rows


def _accuracy(results: Results, task: str, rule: str, fraction: float) -> xr.DataArray:
    return results["outliers"]["right"].sel(task=task, rule=rule, fraction=fraction)


def _outliers(s: Settings) -> list[Claim]:
    beyond = "Beyond the paper: mamba-outliers,"
    rows = []
    for task in LABEL_TASKS:
        words = TASK_WORDS[task]
        choice = (
            *unstated(s),
            f"outliers: ‘{TRIGGER}’ before the text, exact numbers of them; the better of the two labels counts as the answer",
            words,
        )
        rows += [
            Claim(
                f"{PAPER}/beyond-outliers-learns-{task}", f"{beyond} Theorem 1: without outliers, {words}",
                "Without outliers the model finds the label in context.",
                (Check("accuracy", above(0.5), lambda r, t=task: _accuracy(r, t, "flip", 0.0), UNIT),),
                ("outliers",), "outliers", (*choice, "'finds': more often than by chance"), words,
            ),
            Claim(
                f"{PAPER}/beyond-outliers-mamba-{task}", f"{beyond} Figure 1, as the paper's Mamba: {words}",
                "Outliers in up to three quarters of the demonstrations hardly cost anything, whatever their labels.",
                tuple(Check(f"accuracy lost at α = 0.75, {RULE_WORDS[rule]}", below(LITTLE),
                            lambda r, t=task, k=rule: _accuracy(r, t, k, 0.0) - _accuracy(r, t, k, 0.75), SIGNED) for rule in RULES),
                ("outliers",), "outliers", (*choice, f"'hardly': below {LITTLE:g}"), words,
            ),
            Claim(
                f"{PAPER}/beyond-outliers-linear-{task}", f"{beyond} Theorem 4 and Figure 1(A), as the paper's linear Transformer: {words}",
                "Beyond one half the outliers win: with three quarters of the labels flipped most answers are wrong; with one quarter few are.",
                (
                    Check("accuracy at α = 0.75, flipped labels", below(0.5), lambda r, t=task: _accuracy(r, t, "flip", 0.75), UNIT),
                    Check("accuracy lost at α = 0.25, flipped labels", below(LITTLE),
                          lambda r, t=task: _accuracy(r, t, "flip", 0.0) - _accuracy(r, t, "flip", 0.25), SIGNED),
                ),
                ("outliers",), "outliers", (*choice, f"'few': accuracy lost below {LITTLE:g}"), words,
            ),
            Claim(
                f"{PAPER}/beyond-outliers-place-{task}", f"{beyond} Table 2, as the paper's Mamba: {words}",
                "With half of the demonstrations outliers, those closest to the query do most harm.",
                (Check("accuracy with outliers farthest minus closest", above(0.05),
                       lambda r, t=task: r["outliers"]["placed"].sel(task=t, placement="farthest") - r["outliers"]["placed"].sel(task=t, placement="closest"),
                       SIGNED),),
                ("outliers",), "placement", (*choice, "flipped labels; 'sensitive': 5 percentage points, as in the paper's own row"), words,
            ),
            Claim(
                f"{PAPER}/beyond-outliers-mark-{task}", f"{beyond} Corollary 2: {words}",
                "Outliers are recognised by their mark: half of the labels flipped do less harm where the phrase marks them than where nothing does.",
                (Check("accuracy with the phrase minus without", above(0),
                       lambda r, t=task: _accuracy(r, t, "flip", 0.5) - r["outliers"]["unmarked"].sel(task=t), SIGNED),),
                ("outliers",), "placement", choice, words,
            ),
        ]  # fmt: skip
    return rows


def _steps(results: Results, form: str, errors: float) -> xr.DataArray:
    return results["steps"]["right"].sel(form=form, errors=errors)


def _reasoning(s: Settings) -> list[Claim]:
    beyond = "Beyond the paper: chain-of-thought,"
    choice = (
        *unstated(s),
        "greedy steps; an erroneous demonstration has another example's step and answer",
        ", ".join(TWO_STEP_TASKS),
    )
    return [
        Claim(
            f"{PAPER}/beyond-steps", f"{beyond} Theorems 2 and 3 without errors",
            "With the intermediate step in the demonstrations the model answers two-step questions better.",
            (Check("accuracy with steps minus without", above(0), lambda r: pooled(_steps(r, "steps", 0.0) - _steps(r, "direct", 0.0)), SIGNED),),
            ("steps",), "steps", choice,
        ),
        Claim(
            f"{PAPER}/beyond-steps-robust", f"{beyond} Theorem 2",
            "A quarter of erroneous demonstrations hardly hurts where steps are shown.",
            (
                Check("accuracy with steps lost by 25 % erroneous demonstrations", below(LITTLE),
                      lambda r: pooled(_steps(r, "steps", 0.0) - _steps(r, "steps", 0.25)), SIGNED),
                Check("accuracy of the intermediate step lost by them", below(LITTLE),
                      lambda r: pooled(r["steps"]["step_right"].sel(errors=0.0) - r["steps"]["step_right"].sel(errors=0.25)), SIGNED),
            ),
            ("steps",), "steps", (*choice, f"'hardly': below {LITTLE:g}"),
        ),
        Claim(
            f"{PAPER}/beyond-steps-errors", f"{beyond} Theorem 3(a) and Figure 4",
            "Where half of the demonstrations are wrong, showing steps is better than showing answers only.",
            (Check("accuracy with steps minus without, half of the demonstrations wrong", above(0),
                   lambda r: pooled(_steps(r, "steps", 0.5) - _steps(r, "direct", 0.5)), SIGNED),),
            ("steps",), "steps", choice,
        ),
    ]  # fmt: skip


def claims(s: Settings) -> tuple[Claim, ...]:
    """All rows."""
    acts = Claim(
        f"{PAPER}/beyond-interventions", "Beyond the paper: do the interventions act?",
        "An intervention of nothing changes nothing, a planted one does what it must, and each that is used changes the answers.",
        (
            *(Check(f"change of log-probability, {name}", below(1e-3), lambda r, k=name: r["controls"]["unchanged"].sel(nothing=k)) for name in NOTHING),
            Check("log-probability with another prompt's last stream planted, distance from that prompt's own", below(1e-3), lambda r: r["controls"]["planted"]),
            *(Check(f"change of log-probability, {name}", above(0.01), lambda r, k=name: r["controls"]["changed"].sel(used=k)) for name in USED),
        ),
        ("controls",), None, (*unstated(s), "'nothing': below 0.001; 'changes': above 0.01"),
    )  # fmt: skip
    return note((acts, *_figure1(s), *_nonlinear(s), *_outliers(s), *_reasoning(s)), AFTERWARDS)
