"""nonlinear-icl: how nonlinear Transformers learn and generalise in context (Li, Wang, Lu, Cui, Chen; ICML 2024).

Read `settings.py` for the world and the sizes, `experiments.py` for what is run, `claims.py` for what is claimed and by which
rule it is judged, `figures.py` for the figures; `gpt2.py` and `gpt2_claims.py` ask the same of GPT-2.
"""

from iclab.papers.nonlinear_icl import gpt2, gpt2_claims, rates
from iclab.papers.nonlinear_icl.claims import claims
from iclab.papers.nonlinear_icl.experiments import EXPERIMENTS
from iclab.papers.nonlinear_icl.explorer import explore
from iclab.papers.nonlinear_icl.figures import FIGURES
from iclab.papers.nonlinear_icl.settings import PROFILES, symbols
from iclab.authoring.paper import Paper
from iclab.papers.nonlinear_icl.theory import theorems

PAPER = Paper(
    id="nonlinear-icl",
    title="How do nonlinear Transformers learn and generalize in in-context learning?",
    citation="Hongkang Li, Meng Wang, Songtao Lu, Xiaodong Cui, Pin-Yu Chen. ICML 2024.",
    settings=PROFILES,
    experiments=EXPERIMENTS | gpt2.EXPERIMENTS | rates.EXPERIMENTS,
    claims=lambda s: (*claims(s), *gpt2_claims.claims(s), *rates.claims(s)),
    figures=FIGURES | rates.FIGURES,
    symbols=symbols,
    theorems=theorems,
    tables=rates.TABLES,
    equation=r"F(\Psi; P) = a^\top \mathrm{ReLU}\Big( W_O \sum_{i=1}^{l} W_V p_i \; "
    r"\mathrm{softmax}_i\big( (W_K p_i)^\top W_Q \, p_{query} \big) \Big)",
    explore=explore,
)
