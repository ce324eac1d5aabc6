"""feature-selection: Transformers as multi-task feature selectors (Li, Wang, et al.; NeurIPS 2023 workshop M3L).

The world and the model of nonlinear-icl with three more settings: the size λ of the relevant part, bounded noise, ‖q‖ = β.
"""

from iclab.papers.feature_selection import rates
from iclab.papers.feature_selection.claims import claims
from iclab.papers.feature_selection.experiments import EXPERIMENTS
from iclab.papers.feature_selection.explorer import explore
from iclab.papers.feature_selection.figures import FIGURES
from iclab.papers.feature_selection.settings import PROFILES, symbols
from iclab.authoring.paper import Paper
from iclab.papers.feature_selection.theory import theorems

PAPER = Paper(
    id="feature-selection",
    title="Transformers as multi-task feature selectors: generalization analysis of in-context learning",
    citation="Hongkang Li, Meng Wang, et al. Mathematics of Modern Machine Learning workshop at NeurIPS 2023.",
    settings=PROFILES,
    experiments=EXPERIMENTS | rates.EXPERIMENTS,
    claims=lambda s: (*claims(s), *rates.claims(s)),
    figures=FIGURES | rates.FIGURES,
    symbols=symbols,
    theorems=theorems,
    tables=rates.TABLES,
    equation=r"F(\Psi; P) = a^\top \mathrm{ReLU}\Big( W_O \sum_{i=1}^{l} W_V p_i \; "
    r"\mathrm{softmax}_i\big( (W_K p_i)^\top W_Q \, p_{query} \big) \Big)",
    explore=explore,
)
