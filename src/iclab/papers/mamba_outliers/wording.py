"""What mamba-outliers prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

from iclab.statements import Printed

facets = {
    "18tasks": "18 training tasks",
    "cycle": "the bare cycle of 6 tasks",
    "kappa=2": "test outliers of size κ_a' = 2",
    "kappa=10": "test outliers of size κ_a' = 10",
    "exact": "an exact number of outliers",
    "seen": "outliers seen in training",
    "brief": "a briefly trained linear Transformer",
    "start=0.001": "a smaller start, δ = 0.001",
    "start=0.02": "the start δ = 0.02",
    "printed": "(19) as printed",
    "absolute": "the absolute value of (61)",
    "no-residual": "stacks without a residual",
    "label-residual": "a residual of the label",
    "full-residual": "a full residual",
    "linear": "linear attention",
    "linear-causal": "causal linear attention",
    "large=0.1": "“large” as above 0.1",
}

FIGURE_1 = Printed(
    "Figure 1 shows that under three different forms of outliers, the classification error of Mamba "
    "is smaller than 0.01 even when α is close to 0.8. In contrast, the classification error of "
    "linear Transformers is large as long as α > 1/2.",
    "Appendix B.1",
    {"Mamba: largest α with an error below 0.01": 0.8},
)
FIGURE_4_5 = Printed(
    "The conclusions in Figures 4 and 5 are aligned with Figures 2 and 3, respectively.",
    "Appendix C",
)

printed = {
    "thm2": Printed(
        "... if (a) the outlier pattern belongs to (11), (b) the outlier magnitude κ_a' ∈ [κ_a, Θ(V β p_a⁻¹ κ_a⁻¹ L⁻¹ "
        "(1-p_a) ε⁻¹)], (c) α < min(1, p_a l_tr / l_ts), and (d) the number of context examples (12), then for testing "
        "prompt P' defined by Definition 2, the trained model satisfies [0-1 loss] ≤ ε.",
        "Theorem 2, (11) to (13)",
    ),
    "thm3": Printed(
        "T ≥ T_T = Θ(η⁻¹ (1-p_a)⁻¹ β⁻² l_tr⁻¹ M_1) iterations with η ≤ 1 and N = BT samples",
        "Theorem 3, (15) and (16)",
    ),
    "thm4": Printed(
        "if (a) in Theorem 2, ... (c) α ∈ [0, 1/2), and (d) the number of context examples l_ts ≳ "
        "max{Θ((1-α)⁻¹), Θ((1/2-α)⁻² α)} log M_1, then the trained model satisfies [0-1 loss] ≤ ε",
        "Theorem 4, (17) and (18)",
    ),
    "fig1a": FIGURE_1,
    "fig1b": FIGURE_1,
    "fig1c": FIGURE_1,
    "fig2": Printed(
        "The sum of attention scores on the examples that share the same pattern as the query is "
        "significantly larger than that on examples with other patterns, and this gap increases "
        "during training.",
        "Appendix B.2",
    ),
    "fig3": Printed(
        "Figure 3 shows that the first-layer gating values with α = 0.3 of outlier-containing "
        "examples are very small (red bars), while those of clean examples are relatively large and "
        "exhibit an approximately exponential decay with increasing distance from the query (green "
        "bars).",
        "Appendix B.2",
    ),
    "fig4": FIGURE_4_5,
    "fig5": FIGURE_4_5,
    "table2": Printed(
        "We find that Mamba is highly sensitive to the position of outliers, whereas the linear "
        "Transformer (LT) is much less affected.",
        "Appendix B.2",
    ),
}
