"""mamba-outliers: Mamba in in-context learning with outliers (Li, Lu, Cui, Chen, Wang).

Mamba against linear Transformers when some of the examples in the prompt carry an additive outlier and a wrong label.
`gpt2.py` asks the same of GPT-2.
"""

from iclab.papers.mamba_outliers import gpt2
from iclab.papers.mamba_outliers.claims import claims
from iclab.papers.mamba_outliers.experiments import EXPERIMENTS
from iclab.papers.mamba_outliers.figures import FIGURES
from iclab.papers.mamba_outliers.settings import PROFILES
from iclab.papers.mamba_outliers.tables import TABLES
from iclab.papers.paper import Paper

PAPER = Paper(
    id="mamba-outliers",
    title="Understanding Mamba in in-context learning with outliers: a theoretical generalization analysis",
    citation="Hongkang Li, Songtao Lu, Xiaodong Cui, Pin-Yu Chen, Meng Wang.",
    settings=PROFILES,
    experiments=EXPERIMENTS | gpt2.EXPERIMENTS,
    claims=lambda settings: (*claims(settings), *gpt2.claims(settings)),
    figures=FIGURES | gpt2.FIGURES,
    tables=TABLES,
)
