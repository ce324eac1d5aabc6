"""chain-of-thought: how nonlinear Transformers acquire generalization-guaranteed CoT ability.

Reasoning in steps against answering at once, when the examples are noisy and some of their steps are wrong.
`gpt2.py` asks the same of GPT-2.
"""

from iclab.papers.chain_of_thought import gpt2, rates
from iclab.papers.chain_of_thought.claims import claims
from iclab.papers.chain_of_thought.experiments import EXPERIMENTS, check
from iclab.papers.chain_of_thought.explorer import explore
from iclab.papers.chain_of_thought.figures import FIGURES
from iclab.papers.chain_of_thought.settings import PROFILES, symbols
from iclab.authoring.paper import Paper
from iclab.papers.chain_of_thought.theory import theorems

PAPER = Paper(
    id="chain-of-thought",
    title="How do nonlinear Transformers acquire generalization-guaranteed CoT ability?",
    citation="Anonymous authors (as in the version at hand).",
    settings=PROFILES,
    experiments=EXPERIMENTS | gpt2.EXPERIMENTS | rates.EXPERIMENTS,
    claims=lambda s: (*claims(s), *gpt2.claims(s), *rates.claims(s)),
    figures=FIGURES | gpt2.FIGURES | rates.FIGURES,
    symbols=symbols,
    theorems=theorems,
    tables=rates.TABLES,
    check=check,
    equation=r"F(\Psi; P) = \sum_{i} W_V \tilde{p}_i \; \mathrm{softmax}_i\big( \tilde{p}_i^\top W \, \tilde{p}_{query} \big), "
    r"\quad W = W_K^\top W_Q",
    explore=explore,
)
