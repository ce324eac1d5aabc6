"""language-model: the questions of the papers asked of a real language model, SmolLM2 unless another is given.

It needs the extra `llm`. Figure 1 of vector-arithmetic is about such a model; no theorem reaches the rest.
"""

from iclab.authoring import Experiment
from iclab.language.loading import INSTALL, missing
from iclab.language.study import interventions, labels, one_place, steps, task_vectors
from iclab.language.study.figures import figures
from iclab.language.study.settings import Settings, check, settings, unstated
from iclab.language.study.statements import statements

title = "The same questions to a real language model"
citation = (
    "Figure 1 of vector-arithmetic; what nonlinear-icl, mamba-outliers and chain-of-thought say, asked of a model."
)
unit = "prompt"
experiments = {
    "controls": Experiment(interventions.controls, cost=20),
    "task-vectors": Experiment(task_vectors.task_vectors, cost=70),
    "one-place": Experiment(one_place.one_place, cost=85),
    "attention": Experiment(labels.attention, cost=25),
    "pruning": Experiment(interventions.pruning, cost=50),
    "outliers": Experiment(labels.outliers, cost=100),
    "steps": Experiment(steps.steps, cost=40),
}


def lacking(s: Settings) -> str:
    """What has to be installed first, in a sentence; empty if nothing."""
    found = missing(s.model)
    return f"{found}: {INSTALL} adds the statements on a real language model" if found else ""


__all__ = ["check", "citation", "figures", "settings", "statements", "unstated"]
