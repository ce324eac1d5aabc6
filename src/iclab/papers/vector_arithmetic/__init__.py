"""vector-arithmetic: provable in-context vector arithmetic via retrieving task concepts (Bu, Huang, Han, et al.).

A model trained on question-answer sentences retrieves the task vector and adds it to the query; one trained on
word-label prompts mixes low-level features in and keeps a constant error.
"""

from iclab.papers.vector_arithmetic.experiments import experiments
from iclab.papers.vector_arithmetic.explorer import explore
from iclab.papers.vector_arithmetic.figures import figures, tables
from iclab.papers.vector_arithmetic.settings import settings, symbols, unstated
from iclab.papers.vector_arithmetic.statements import statements
from iclab.papers.vector_arithmetic.theory import theorems
from iclab.papers.vector_arithmetic.wording import facets, printed

title = "Provable in-context vector arithmetic via retrieving task concepts"
citation = "Dake Bu, Wei Huang, Andi Han, Atsushi Nitanda, Qingfu Zhang, Hau-San Wong, Taiji Suzuki."
equation = (
    r"h_0 = \mathrm{LN}\Big( \sum_{l<L} W_V T_l \; \mathrm{softmax}_l\big( (W_K T_l)^\top W_Q T_L \big) \Big), "
    r"\quad h = h_0 + T_L"
)

__all__ = [
    "experiments",
    "explore",
    "facets",
    "figures",
    "printed",
    "settings",
    "statements",
    "symbols",
    "tables",
    "theorems",
    "unstated",
]
