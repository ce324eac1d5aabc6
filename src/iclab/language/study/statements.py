"""The statements of language-model: what the papers' theories say of language models, asked of one.

No theorem reaches a real model: all of it is beyond the papers. Intervals are over prompts. A rule is the paper's own
where it gives a number or a direction; margins of ours stand in `ours`. Those on Figure 1 of vector-arithmetic have a
module of their own.
"""

from __future__ import annotations

from iclab.authoring import SIGNED, UNIT, Part, Reading, Statement, above, below, identical, larger, measured
from iclab.language.study import figure1
from iclab.language.study.interventions import NOTHING, USED
from iclab.language.study.labels import ORDERS, RULES, TRIGGER
from iclab.language.study.parts import AFTER_HARDLY, GROUPED, HARDLY, SCOUTED, cost, more
from iclab.language.words import LABEL_TASKS, TWO_STEP_TASKS

RULE_WORDS = {"flip": "flipped labels", "target": "one target label", "random": "random labels"}
TASK_WORDS = {
    "sentiment": "labels with a meaning (sentiment)",
    "animal-thing": "labels without a meaning (animal or thing)",
}
SIZES = {
    "weights": "a neuron's size: product of the norms of its weights",
    "activity": "a neuron's size: mean |activation| times norm of its way out",
}
IN_SIZES = tuple(Reading(name, why) for name, why in SIZES.items())
LABELS = tuple(Reading(task, TASK_WORDS[task], at={"task": task}) for task in LABEL_TASKS)

OUTLIERS = (
    f"{SCOUTED} few-shot accuracy with 8 and 16 demonstrations, no outliers. Runs with 32 and 40 "
    f"prompts per task were inconclusive in most of these rows; now all 60 queries are asked. {GROUPED}"
)
PRUNED = f"{SCOUTED} accuracy with 10 and 30 % of the neurons gone: so the rates are small. {GROUPED}"
STEPS = f"{SCOUTED} accuracy with and without steps, no errors, with 6 and 10 demonstrations. {GROUPED}"
MARKED = f"outliers: ‘{TRIGGER}’ before the text, exact numbers of them; the better of the two labels is the answer"
GREEDY = f"greedy steps; an erroneous demonstration has another's step and answer; tasks: {', '.join(TWO_STEP_TASKS)}"

same, changed = measured("controls", "unchanged"), measured("controls", "changed")
share, mixed = (measured("attention", "head_share").sel(order=order) for order in ORDERS)
pruned = measured("pruning", "right")
chance, clean = pruned.sel(order="random", rate=0.15), pruned.sel(order="random", rate=0.0)
small, large = ({k: pruned.sel(order=f"{k}, {end}", rate=0.15) for k in SIZES} for end in ("smallest", "largest"))
right, placed = measured("outliers", "right"), measured("outliers", "placed")
flipped, unmarked = right.sel(rule="flip"), measured("outliers", "unmarked")
step, answer = measured("steps", "step_right"), measured("steps", "right")
stepwise, better = answer.sel(form="steps"), answer.sel(form="steps") - answer.sel(form="direct")
finds = Part("accuracy without outliers", flipped.sel(fraction=0.0), above(0.5, "order"), UNIT)
helps = more("accuracy with steps minus without", better.sel(errors=0.0))
statements = [
    Statement(
        "interventions", "Beyond: do the interventions act?",
        "An intervention of nothing changes nothing, a planted one does what it must, those that are used act.",
        (*(Part(f"change of log-probability, {name}", same.sel(nothing=name), identical(1e-3)) for name in NOTHING),
         Part("log-probability with another prompt's last stream planted, distance from that prompt's own",
              measured("controls", "planted"), identical(1e-3)),
         *(Part(f"change of log-probability, {name}", changed.sel(used=name), larger(0.01)) for name in USED)),
        ours=("'nothing': below 0.001; 'changes': above 0.01",), beyond=True,
        architecture="it is about our interventions, not about what a model knows: every network must pass",
        afterwards="Chosen after the interventions had been run on two held-out prompts per task; the two parts on "
        "what an MLP adds came in with the statements that use it.",
    ),
    *figure1.statements,
    Statement(
        "attention", "Beyond: nonlinear-icl, Corollary 4.3 and Figure 2(B)",
        "The query attends to demonstrations with its own label more than to others; attention concentrates on them.",
        (Part("share of attention on demonstrations with the query's label", share, above(0.5, "order"), UNIT),
         more("the share minus that where labels are shuffled", share - mixed),
         Part("the share approaches 1", share, above(0.9), UNIT)),
        LABELS, figure="attention", beyond=True,
        ours=("one head of all, chosen on held-out queries; mass on whole demonstrations from the prompt's last token, "
              "as a share of that on all", "'approaches 1': above 0.9, as for Fig. 2(B)"),
        afterwards=f"{SCOUTED} few-shot accuracy with 8 and 16 demonstrations. The first run chose the head on 8 "
        "held-out queries and found 0.51 and 0.84; now on 16, as 8 are few to choose among 270 heads by. It had 32 "
        f"prompts per task; now 24, to save time. {GROUPED} The part on shuffled labels came last: a head that looks "
        "at the label's own token would pass the first one, and the corollary is about the query's pattern.",
    ),
    Statement(
        "pruning", "Beyond: nonlinear-icl, Theorem 3.7 and Figure 5(A)",
        "Removing the 15 % smallest MLP neurons hardly costs anything; removing as many large ones costs more.",
        (*(cost("accuracy lost without the 15 % smallest", clean, small[k], k) for k in SIZES),
         *(more("accuracy without them minus without the largest", small[k] - large[k], SIGNED, k) for k in SIZES)),
        IN_SIZES, figure="pruning", beyond=True,
        ours=("normalisation gains not folded in; the same share in every block", HARDLY),
        afterwards=f"{PRUNED} {AFTER_HARDLY} What random neurons cost was a part; the theorem does not speak of it.",
    ),
    Statement(
        "pruning-random", "Beyond: nonlinear-icl, Theorem 3.7: does size tell more than chance?",
        "Removing the 15 % smallest MLP neurons costs less than removing as many at random.",
        tuple(more("accuracy without them minus without random ones", small[k] - chance, SIGNED, k) for k in SIZES),
        IN_SIZES, figure="pruning", beyond=True, ours=("one draw of random neurons",), afterwards=PRUNED,
    ),
    Statement(
        "outliers-mamba", "Beyond: mamba-outliers, Theorem 1 and Figure 1, as the paper's Mamba",
        "The model finds the label in context, and outliers in up to three quarters of the demonstrations hardly cost "
        "anything, whatever their labels.",
        (finds,
         *(cost(f"accuracy lost at α = 0.75, {RULE_WORDS[rule]}", right.sel(rule=rule, fraction=0.0),
                right.sel(rule=rule, fraction=0.75), chance=0.5) for rule in RULES)),
        LABELS, figure="outliers", afterwards=f"{OUTLIERS} {AFTER_HARDLY}", beyond=True,
        ours=(MARKED, "'finds': more often than by chance", HARDLY),
    ),
    Statement(
        "outliers-linear", "Beyond: mamba-outliers, Theorem 4 and Figure 1(A), as the paper's linear Transformer",
        "Beyond one half outliers win: most answers are wrong with three quarters of the labels flipped, few with one.",
        (finds,
         Part("accuracy at α = 0.75, flipped labels", flipped.sel(fraction=0.75), below(0.5), UNIT),
         cost("accuracy lost at α = 0.25, flipped labels", flipped.sel(fraction=0.0), flipped.sel(fraction=0.25),
              chance=0.5)),
        LABELS, figure="outliers", ours=(MARKED, HARDLY), beyond=True,
        afterwards=f"{OUTLIERS} {AFTER_HARDLY} That it finds the label at all was not asked here.",
    ),
    Statement(
        "outliers-place", "Beyond: mamba-outliers, Table 2, as the paper's Mamba",
        "With half of the demonstrations outliers, those closest to the query do most harm.",
        (Part("accuracy with outliers farthest minus closest",
              placed.sel(placement="farthest") - placed.sel(placement="closest"), larger(0.05), SIGNED),),
        LABELS, figure="placement", afterwards=OUTLIERS, beyond=True,
        ours=(MARKED, "flipped labels; 'sensitive': 5 percentage points, as in the paper's own statement"),
    ),
    Statement(
        "outliers-mark", "Beyond: mamba-outliers, Corollary 2",
        "Outliers are recognised by their mark: half of the labels flipped do less harm with the phrase than without.",
        (more("accuracy with the phrase minus without", flipped.sel(fraction=0.5) - unmarked),),
        LABELS, figure="placement", ours=(MARKED,), afterwards=OUTLIERS, beyond=True,
    ),
    Statement(
        "steps", "Beyond: chain-of-thought, Theorem 3(a) and Figure 4",
        "With the intermediate step in the demonstrations the model answers two-step questions better, also where half "
        "of them are wrong.",
        (helps, more("accuracy with steps minus without, half of the demonstrations wrong", better.sel(errors=0.5))),
        figure="steps", ours=(GREEDY,), afterwards=STEPS, beyond=True,
    ),
    Statement(
        "steps-robust", "Beyond: chain-of-thought, Theorem 2",
        "Steps help, and where they are shown a quarter of erroneous demonstrations hardly hurts.",
        (helps,
         cost("accuracy lost by 25 % erroneous ones", stepwise.sel(errors=0.0), stepwise.sel(errors=0.25)),
         cost("accuracy of the intermediate step lost by them", step.sel(errors=0.0), step.sel(errors=0.25))),
        figure="steps", ours=(GREEDY, HARDLY), beyond=True,
        afterwards=f"{STEPS} The first part came in with the grouping. {AFTER_HARDLY}",
    ),
]  # fmt: skip
