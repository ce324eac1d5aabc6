"""feature-selection: Transformers as multi-task feature selectors (Li, Wang, et al.; NeurIPS 2023 workshop M3L).

The world and the model of nonlinear-icl with three more settings: the size λ of the relevant part, bounded noise, ‖q‖ =
β.
"""

from iclab.papers.feature_selection.early import experiments as first_steps
from iclab.papers.feature_selection.edges import experiments as at_edges
from iclab.papers.feature_selection.experiments import experiments as trained
from iclab.papers.feature_selection.explorer import explore
from iclab.papers.feature_selection.figures import figures, tables
from iclab.papers.feature_selection.lemmas import statements
from iclab.papers.feature_selection.settings import settings, symbols, unstated
from iclab.papers.feature_selection.sizes import experiments as by_size
from iclab.papers.feature_selection.theory import theorems
from iclab.papers.feature_selection.wording import facets, printed

title = "Transformers as multi-task feature selectors: generalization analysis of in-context learning"
citation = "Hongkang Li, Meng Wang, et al. Mathematics of Modern Machine Learning workshop at NeurIPS 2023."
equation = (
    r"F(\Psi; P) = a^\top \mathrm{ReLU}\Big( W_O \sum_{i=1}^{l} W_V p_i \; "
    r"\mathrm{softmax}_i\big( (W_K p_i)^\top W_Q \, p_{query} \big) \Big)"
)

experiments = trained | at_edges | by_size | first_steps

__all__ = [
    "citation", "equation", "experiments", "explore", "facets", "figures", "printed", "settings", "statements",
    "symbols", "tables", "theorems", "title", "unstated",
]  # fmt: skip
