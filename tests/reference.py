"""Eq. (2) in float64 NumPy, token by token, written from the paper and not from the code it checks."""

import numpy as np


def forward(letters, tokens, present):
    w_q, w_k, w_v, w_o, a = (np.asarray(letters[name], np.float64) for name in ("W_Q", "W_K", "W_V", "W_O", "a"))
    tokens = np.asarray(tokens, np.float64)
    query = tokens[-1]
    contexts = [index for index in range(len(tokens) - 1) if present[index]]
    scores = [float((w_k @ tokens[index]) @ (w_q @ query)) for index in contexts]
    exponentials = [np.exp(score - max(scores)) for score in scores]
    attention = [value / sum(exponentials) for value in exponentials]
    pooled = np.zeros(len(w_v))
    for weight, index in zip(attention, contexts, strict=True):
        pooled += weight * (w_v @ tokens[index])
    output = 0.0
    for neuron in range(len(a)):
        output += a[neuron] * max(0.0, float(w_o[neuron] @ pooled))
    return output, dict(zip(contexts, attention, strict=True))
