"""nonlinear-icl: how nonlinear Transformers learn and generalise in context (Li, Wang, Lu, Cui, Chen; ICML 2024).

Read `settings.py` for the world and the sizes, `experiments.py`, `laws.py`, `sizes.py` and `gpt2.py` for what is run,
and `statements.py`, `lemmas.py`, `panels.py` and `beyond.py` for what is said and by which rule it is judged.
"""

from iclab.papers.nonlinear_icl.beyond import statements
from iclab.papers.nonlinear_icl.experiments import experiments as one_layer
from iclab.papers.nonlinear_icl.explorer import explore
from iclab.papers.nonlinear_icl.figures import figures, tables
from iclab.papers.nonlinear_icl.gpt2 import experiments as deep
from iclab.papers.nonlinear_icl.laws import experiments as rates
from iclab.papers.nonlinear_icl.lemmas import experiments as lucky
from iclab.papers.nonlinear_icl.settings import check, settings, symbols, unstated
from iclab.papers.nonlinear_icl.sizes import experiments as by_size
from iclab.papers.nonlinear_icl.theory import theorems
from iclab.papers.nonlinear_icl.wording import facets, printed

title = "How do nonlinear Transformers learn and generalize in in-context learning?"
citation = "Hongkang Li, Meng Wang, Songtao Lu, Xiaodong Cui, Pin-Yu Chen. ICML 2024."
equation = (
    r"F(\Psi; P) = a^\top \mathrm{ReLU}\Big( W_O \sum_{i=1}^{l} W_V p_i \; "
    r"\mathrm{softmax}_i\big( (W_K p_i)^\top W_Q \, p_{query} \big) \Big)"
)
experiments = one_layer | deep | rates | by_size | lucky

__all__ = [
    "check",
    "citation",
    "equation",
    "experiments",
    "explore",
    "facets",
    "figures",
    "printed",
    "settings",
    "statements",
    "symbols",
]
__all__ += ["tables", "theorems", "title", "unstated"]
