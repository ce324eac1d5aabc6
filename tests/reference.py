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


def gpt2(letters, heads, tokens, present):
    """GPT-2 in float64 NumPy, token by token and head by head, on the present tokens only: what is absent does not
    exist.
    """
    w = {name: np.asarray(value, np.float64) for name, value in letters.items()}

    def norm(x, name):
        return (x - x.mean()) / np.sqrt(x.var() + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def linear(x, name):
        return x @ w[f"{name}.weight"] + w[f"{name}.bias"]

    columns = [column for column, there in zip(np.asarray(tokens, np.float64), present, strict=True) if there]
    stream = [linear(column, "read_in") + w["wpe.weight"][place] for place, column in enumerate(columns)]
    width, depth = len(stream[0]), sum(name.endswith("ln_1.weight") for name in w)
    attention = np.zeros((depth, heads, len(stream)))
    for layer in range(depth):
        parts = [np.split(linear(norm(x, f"h.{layer}.ln_1"), f"h.{layer}.attn.c_attn"), 3) for x in stream]
        after = []
        for place, x in enumerate(stream):
            pooled = []
            for head in range(heads):
                own = slice(head * width // heads, (head + 1) * width // heads)
                scores = np.array([parts[place][0][own] @ parts[s][1][own] for s in range(place + 1)])
                weights = np.exp(scores / np.sqrt(width // heads))
                weights /= weights.sum()
                pooled.append(sum(weights[s] * parts[s][2][own] for s in range(place + 1)))
                attention[layer, head, : place + 1] = weights  # the query's, which comes last, stays
            x = x + linear(np.concatenate(pooled), f"h.{layer}.attn.c_proj")
            hidden = linear(norm(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc")
            gelu = 0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden**3)))
            after.append(x + linear(gelu, f"h.{layer}.mlp.c_proj"))
        stream = after
    return linear(norm(stream[-1], "ln_f"), "read_out"), attention
