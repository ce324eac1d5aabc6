"""mamba-outliers: Mamba in in-context learning with outliers (Li, Lu, Cui, Chen, Wang).

Mamba against linear Transformers when some of the examples in the prompt carry an additive outlier and a wrong label.
`gpt2.py` asks the same of GPT-2.
"""

from iclab.papers.mamba_outliers import gpt2, rates
from iclab.papers.mamba_outliers.claims import claims
from iclab.papers.mamba_outliers.experiments import EXPERIMENTS
from iclab.papers.mamba_outliers.explorer import explore
from iclab.papers.mamba_outliers.figures import FIGURES
from iclab.papers.mamba_outliers.settings import PROFILES, symbols
from iclab.papers.mamba_outliers.tables import TABLES
from iclab.authoring.paper import Paper
from iclab.papers.mamba_outliers.theory import theorems

PAPER = Paper(
    id="mamba-outliers",
    title="Understanding Mamba in in-context learning with outliers: a theoretical generalization analysis",
    citation="Hongkang Li, Songtao Lu, Xiaodong Cui, Pin-Yu Chen, Meng Wang.",
    settings=PROFILES,
    experiments=EXPERIMENTS | gpt2.EXPERIMENTS | rates.EXPERIMENTS,
    claims=lambda s: (*claims(s), *gpt2.claims(s), *rates.claims(s)),
    figures=FIGURES | gpt2.FIGURES | rates.FIGURES,
    symbols=symbols,
    theorems=theorems,
    tables=TABLES | rates.TABLES,
    equation=r"F(\Psi; P) = \sum_{i=1}^{l+1} G_{i,l+1}(w) \, y_i \, p_i^\top W_B^\top W_C \, p_{query}, \quad "
    r"G_{i,l+1}(w) = \sigma(w^\top p_i) \prod_{j=i+1}^{l+1} \big( 1 - \sigma(w^\top p_j) \big)",
    explore=explore,
)
