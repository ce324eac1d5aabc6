"""chain-of-thought: how nonlinear Transformers acquire generalization-guaranteed CoT ability.

Reasoning in steps against answering at once, when the examples are noisy and some of their steps are wrong.
"""

from iclab.papers.chain_of_thought import rates
from iclab.papers.chain_of_thought.claims import claims
from iclab.papers.chain_of_thought.experiments import EXPERIMENTS, check
from iclab.papers.chain_of_thought.figures import FIGURES
from iclab.papers.chain_of_thought.settings import PROFILES, symbols
from iclab.papers.paper import Paper
from iclab.theory.chain_of_thought import theorems

PAPER = Paper(
    id="chain-of-thought",
    title="How do nonlinear Transformers acquire generalization-guaranteed CoT ability?",
    citation="Anonymous authors (as in the version at hand).",
    settings=PROFILES,
    experiments=EXPERIMENTS | rates.EXPERIMENTS,
    claims=lambda s: (*claims(s), *rates.claims(s)),
    figures=FIGURES | rates.FIGURES,
    symbols=symbols,
    theorems=theorems,
    tables=rates.TABLES,
    check=check,
)
