"""chain-of-thought: how nonlinear Transformers acquire generalization-guaranteed CoT ability.

Reasoning in steps against answering at once, when examples are noisy and partly wrong. `gpt2.py` asks GPT-2 the same.
"""

from iclab.papers.chain_of_thought.experiments import check, experiments
from iclab.papers.chain_of_thought.explorer import explore
from iclab.papers.chain_of_thought.figures import figures, tables
from iclab.papers.chain_of_thought.settings import settings, symbols, unstated
from iclab.papers.chain_of_thought.statements import statements
from iclab.papers.chain_of_thought.theory import theorems
from iclab.papers.chain_of_thought.wording import facets, printed

title = "How do nonlinear Transformers acquire generalization-guaranteed CoT ability?"
citation = "Anonymous authors (as in the version at hand)."
equation = (
    r"F(\Psi; P) = \sum_{i} W_V \tilde{p}_i \; \mathrm{softmax}_i\big( \tilde{p}_i^\top W \, \tilde{p}_{query} \big), "
    r"\quad W = W_K^\top W_Q"
)

__all__ = [
    "check", "citation", "equation", "experiments", "explore", "facets", "figures", "printed", "settings", "statements",
    "symbols", "tables", "theorems", "title", "unstated",
]  # fmt: skip
