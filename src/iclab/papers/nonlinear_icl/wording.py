"""What nonlinear-icl prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

from iclab.statements import Printed

facets = {
    "inside": "settings that meet all hypotheses",
    "U=4": "U = 4 cycles of training tasks",
    "one-layer": "the one-layer model",
    "gpt2": "GPT-2",
    "gpt2-varied": "GPT-2 with contexts of varied length",
    "loss": "the loss",
    "error": "the error",
    "in-domain": "prompts in domain",
    "out-of-domain": "prompts out of domain",
    "T=500": "500 iterations",
}

FIGURE_4 = Printed(
    "Figure 4 (A) and (B) show that when α' = 0.8, the advance of ICL over other algorithms is not "
    "significant, while when α' = 0.6, ICL is the most sample-efficient for a small generalization "
    "error.",
    "Section 5.1",
)
FIGURE_6 = Printed(
    "Figure 6 shows that the required length of the training prompt is linear in α⁻¹, while the "
    "required number of training iterations is linear in α^(-2/3)",
    "Appendix A.1",
)

printed = {
    "thm3.3": Printed(
        "(iv) and the number of iterations satisfies T = Θ(η⁻¹ M_1 α^(-2/3) β^(-2/3) √log M_1), with "
        "step size η ≤ 1 and N = BT samples, then with a high probability, the returned model "
        "satisfies that E[ℓ(Ψ; P, z)] ≤ O(ε).",
        "Theorem 3.3, (10) and (11)",
    ),
    "thm3.7": Printed(
        "there exists L ⊂ [m] with |L| = Ω(m) ... pruning all neurons i ∈ L^c leads to a "
        "generalization error E[ℓ(Ψ_{L^c}; P, z)] ≤ O(ε + M_1^(-1/2))",
        "Theorem 3.7, (14) and (15)",
    ),
    "fig3a": Printed(
        "Figure 3 (A) shows that the out-of-domain classification error archives < 0.01 when S_1 ≥ 1 "
        "and deviates from 0 when S_1 < 1, which justifies the necessity of condition (12).",
        "Section 5.1",
    ),
    "fig3b": Printed(
        "Figure 3 (B) indicates that a longer testing context length is needed when α' is smaller for"
        " in- or out-of-domain",
        "Section 5.1",
    ),
    "fig4a": FIGURE_4,
    "fig4b": FIGURE_4,
    "fig5a": Printed(
        "Figure 5 (A) shows that magnitude-based pruning does not hurt out-of-domain generalization "
        "if the pruning rate is lower than around 15%, which is the ratio of W_O neurons with a small"
        " magnitude. The generalization error increases as the pruning rate increases when pruning "
        "neurons with large weights.",
        "Section 5.1",
        {"fraction of small neurons": 0.15},
    ),
    "fig5b": Printed(
        "Figure 5 (B) justifies the impact of α' in Theorem 3.7 that larger α' can improve the "
        "performance of the pruned model.",
        "Section 5.1",
    ),
    "fig6a": FIGURE_6,
    "fig6b": FIGURE_6,
    "fig7": Printed(
        "Figure 7 shows that for any M_1, the generalization error is significant as long as |T|_tr <"
        " M_1, while the generalization error reaches around 0 as long as |T|_tr ≥ M_1 and T covers "
        "all the possibilities of IDR patterns and labels.",
        "Appendix A.2",
    ),
}
