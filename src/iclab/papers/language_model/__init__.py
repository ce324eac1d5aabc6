"""language-model: the questions of the papers asked of a real language model, SmolLM2 unless another is given.

It needs the extra `llm`. Figure 1 of vector-arithmetic is about such a model; the rows called `beyond-...` ask what the other
papers' theories say where no theorem reaches.
"""

from iclab.language.loading import INSTALL, missing
from iclab.papers.language_model.attention import attention
from iclab.papers.language_model.claims import claims
from iclab.papers.language_model.controls import controls
from iclab.papers.language_model.figures import FIGURES
from iclab.papers.language_model.outliers import outliers
from iclab.papers.language_model.pruning import pruning
from iclab.papers.language_model.settings import PROFILES, Settings, check
from iclab.papers.language_model.steps import steps
from iclab.papers.language_model.task_vectors import task_vectors
from iclab.authoring.paper import Experiment, Paper


def lacking(settings: Settings) -> str:
    """What has to be installed first, in a sentence; empty if nothing."""
    found = missing(settings.model)
    return f"{found}: {INSTALL} adds the claims on a real language model" if found else ""


PAPER = Paper(
    id="language-model",
    title="The same questions to a real language model",
    citation="Figure 1 of vector-arithmetic; what nonlinear-icl, mamba-outliers and chain-of-thought say, asked of a model.",
    settings=PROFILES,
    experiments={
        "controls": Experiment(controls, cost=20),
        "task-vectors": Experiment(task_vectors, cost=70),
        "attention": Experiment(attention, cost=25),
        "pruning": Experiment(pruning, cost=50),
        "outliers": Experiment(outliers, cost=100),
        "steps": Experiment(steps, cost=40),
    },
    claims=claims,
    figures=FIGURES,
    check=check,
    lacking=lacking,
    unit="prompt",
)
