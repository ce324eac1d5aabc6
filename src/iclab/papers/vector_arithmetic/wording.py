"""What vector-arithmetic prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

from iclab.statements import Printed

facets = {
    "inside": "settings that meet Condition 3.1",
    "t=best": "the best t of each training",
    "t=last": "the last t",
    "t=common": "one t for all trainings",
    "η=0.05": "η = 0.05",
    "q_V=0.4": "step sizes that train (q_V = 0.4)",
    "q_V=1e-5": "the printed step sizes",
    "printed-sizes": "the printed sizes",
}

printed = {
    "fig2": Printed(
        "In (d), W_V overfits to low-level features b_k, resulting in persistently constant (0.2) "
        "test error shown in (b).",
        "Caption of Figure 2",
        {
            "(b) highest 0-1 error on ICL prompts in the second half": 0.2,
            "(b) lowest 0-1 error on ICL prompts in the second half": 0.2,
        },
    ),
    "fig3": Printed(
        "Compared to the ICL-trained model in Figure 2, W_V trained on QA data does not overfit to "
        "low-level features b_k (see (d)), leading to improved generalization and reduced test errors"
        " in (b).",
        "Caption of Figure 3",
    ),
    "fig4": Printed(
        "In (d), W_V overfits to low-level features b_k, resulting in persistently constant (0.2) "
        "test error shown in (b).",
        "Caption of Figure 4",
        {"(b) highest 0-1 error in the second half": 0.2, "(b) lowest 0-1 error in the second half": 0.2},
    ),
}
