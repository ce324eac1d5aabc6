"""mamba-outliers: Mamba in in-context learning with outliers (Li, Lu, Cui, Chen, Wang).

Mamba against linear Transformers when some of the examples in the prompt carry an additive outlier and a wrong label.
"""

from iclab.papers.mamba_outliers.adversary import experiments as attacked
from iclab.papers.mamba_outliers.experiments import experiments as drawn
from iclab.papers.mamba_outliers.explorer import explore
from iclab.papers.mamba_outliers.figures import figures, tables
from iclab.papers.mamba_outliers.rates import experiments as trained
from iclab.papers.mamba_outliers.settings import check, settings, symbols, unstated
from iclab.papers.mamba_outliers.shifts import experiments as shifted
from iclab.papers.mamba_outliers.statements import statements
from iclab.papers.mamba_outliers.theory import theorems
from iclab.papers.mamba_outliers.wording import facets, printed

title = "Understanding Mamba in in-context learning with outliers: a theoretical generalization analysis"
citation = "Hongkang Li, Songtao Lu, Xiaodong Cui, Pin-Yu Chen, Meng Wang."
equation = (
    r"F(\Psi; P) = \sum_{i=1}^{l+1} G_{i,l+1}(w) \, y_i \, p_i^\top W_B^\top W_C \, p_{query}, \quad "
    r"G_{i,l+1}(w) = \sigma(w^\top p_i) \prod_{j=i+1}^{l+1} \big( 1 - \sigma(w^\top p_j) \big)"
)

experiments = drawn | trained | shifted | attacked

__all__ = [
    "check", "citation", "equation", "experiments", "explore", "facets", "figures", "printed", "settings", "statements",
    "symbols", "tables", "theorems", "title", "unstated",
]  # fmt: skip
