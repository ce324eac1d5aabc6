"""What chain-of-thought prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

from iclab.statements import Printed

facets = {
    "ε=0.1": "ε = 0.1",
    "ε=0.05": "ε = 0.05",
    "ε=0.025": "ε = 0.025",
    "ε=0.0125": "ε = 0.0125",
}

FIGURE_2 = Printed(
    "Figure 2 illustrates that more testing examples are needed when α', τ^f, or ρ^f is small, which "
    "verifies the trend of the lower bound of l_ts^f in (23).",
    "Appendix E",
)
FIGURE_3 = Printed(
    "Figure 2 indicates that more testing examples are required when α', τ_o^f, or ρ_o^f is small, "
    "which is consistent with our bound in (25).",
    "Appendix E",
)

printed = {
    "fig2a": FIGURE_2,
    "fig2b": FIGURE_2,
    "fig2c": FIGURE_2,
    "fig3a": FIGURE_3,
    "fig3b": FIGURE_3,
    "fig3c": FIGURE_3,
    "fig4": Printed(
        "Figure 4 shows that when Condition 1 holds, the ICL testing error decreases if the number of"
        " contexts increases. However, when Condition 1 fails, the ICL testing error remains large, "
        "irrespective of the number of contexts.",
        "Appendix E",
    ),
    "fig5": Printed(
        "The result shows that the attention weights on contexts that share the same TSR pattern and "
        "in the same step as the query increase along the training and converge to around 1.",
        "Appendix E",
        {"attention mass on same pattern and step at the end": 1.0},
    ),
}
