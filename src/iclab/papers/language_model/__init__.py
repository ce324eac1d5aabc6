"""language-model: the questions of the papers asked of a real language model, SmolLM2 unless another is given.

It needs the extra `llm`. Figure 1 of vector-arithmetic is about such a model; the rest asks what the papers' theories say where
no theorem reaches.
"""

from iclab.authoring import Experiment
from iclab.language.loading import INSTALL, missing
from iclab.papers.language_model.figures import figures
from iclab.papers.language_model.interventions import controls, pruning
from iclab.papers.language_model.labels import attention, outliers
from iclab.papers.language_model.settings import Settings, check, settings, unstated
from iclab.papers.language_model.statements import statements
from iclab.papers.language_model.steps import steps as two_steps
from iclab.papers.language_model.task_vectors import task_vectors as vectors

title = "The same questions to a real language model"
citation = (
    "Figure 1 of vector-arithmetic; what nonlinear-icl, mamba-outliers and chain-of-thought say, asked of a model."
)
unit = "prompt"
experiments = {
    "controls": Experiment(controls, cost=20),
    "task-vectors": Experiment(vectors, cost=70),
    "attention": Experiment(attention, cost=25),
    "pruning": Experiment(pruning, cost=50),
    "outliers": Experiment(outliers, cost=100),
    "steps": Experiment(two_steps, cost=40),
}


def lacking(s: Settings) -> str:
    """What has to be installed first, in a sentence; empty if nothing."""
    found = missing(s.model)
    return f"{found}: {INSTALL} adds the statements on a real language model" if found else ""


__all__ = [
    "check",
    "citation",
    "experiments",
    "figures",
    "lacking",
    "settings",
    "statements",
    "title",
    "unit",
    "unstated",
]
