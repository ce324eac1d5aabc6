"""What feature-selection prints, word for word, and what the words of its readings' names are called."""

from __future__ import annotations

from iclab.statements import Printed

facets = {
    "inside": "settings that meet all hypotheses",
    "wide": "a wider MLP",
    "edge": "settings at the edge of the conditions",
    "fixed": "every λ = λ_*",
    "range": "λ in a range",
    "printed": "the formula as printed",
    "embeddings": "embeddings",
}

printed = {
    "thm2": Printed(
        "the length of the testing prompt satisfies l_ts ≥ 2/α', then with high probability, the "
        "model learned with training data achieves zero generalization error.",
        "Theorem 2",
    ),
    "prop1": Printed(
        "Proposition 1 indicates that the returned self-attention layer promotes the magnitude of the"
        " training-relevant patterns from Θ(log log M) to Θ(√log M) and maintains the training-"
        "irrelevant features close to the initialization.",
        "Section 3.4",
    ),
    "prop2": Printed(
        "Proposition 2 states that the MLP layer decodes the obtained feature by the self-attention "
        "layer with a high weight on the embedding of the label part.",
        "Section 3.4",
    ),
    "fig1b": Printed(
        "The growth of the MLP layer output before ReLU. The blue curve means the output contribution"
        " from the feature embeddings. The orange curve refers to the output contribution from the "
        "label embeddings.",
        "Caption of Figure 1",
    ),
}
