"""Token mixers in float64 NumPy, token by token on a matrix as memory, written from the table of mechanisms."""

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.log1p(np.exp(-abs(x))) + np.maximum(x, 0)


def unit(key):
    return key / np.sqrt(key @ key + 1e-6)


def decay(kind, own, token):
    if kind == "none":
        return 1.0
    if kind == "fixed":
        return 1 - 2.0**-5
    if kind == "scalar":
        return 1 - sigmoid(own["w"] @ token)
    if kind == "rate":
        return np.exp(-np.exp(own["log r"]) * softplus(own["w"] @ token))
    if kind == "vector":
        return sigmoid(own["w"] @ token) ** (1 / 16)
    return np.exp(-np.exp(-0.5) * sigmoid(own["w"] @ token))


def gate(kind, own, token, kept):
    if kind == "own":
        return sigmoid(own["w_g"] @ token)
    return {"none": 1.0, "tied": 1 - kept}[kind] if kind != "step" else softplus(own["w"] @ token)


def layer(mechanism, own, tokens, values):
    """o_t at every token; `own` are the layer's letters."""
    memory, found = np.zeros((values.shape[1], len(own["W_B"]))), []
    weights, examples = np.zeros(0), max(len(tokens) - 1, 1)
    for number, (token, value) in enumerate(zip(tokens, values, strict=True)):
        key, query, asking = own["W_B"] @ token, own["W_C"] @ token, number == len(tokens) - 1
        kept = decay(mechanism.decay, own, token)
        opened = gate(mechanism.gate, own, token, kept)
        if mechanism.normaliser == "softmax":
            weights = np.append(weights * kept, opened)
            scores = [float((own["W_B"] @ earlier) @ query) for earlier in tokens[: number + 1]]
            likely = np.exp(scores) * weights
            found.append(likely @ values[: number + 1] / likely.sum())
            continue
        if mechanism.delta in ("none", "unit"):
            key = key if mechanism.delta == "none" else unit(key)
            memory = memory * kept + opened * np.outer(value, key)
        elif mechanism.delta == "key":
            key = unit(key)
            correction = np.eye(len(key)) - (0 if asking else opened) * np.outer(key, key)
            memory = (memory * kept) @ correction + opened * np.outer(value, key)
        else:
            rates, removal = sigmoid(own["w_g"] @ token), unit(own["ξ"] * key)
            change = np.diag(kept * np.ones(len(key))) - (0 if asking else 1) * np.outer(removal, rates * removal)
            memory = memory @ change + np.outer(value, rates * key)
        found.append(memory @ query / (examples if mechanism.normaliser == "mean" else 1))
    return np.array(found)


def stack(model, tokens, present):
    """The answer block at the query of a whole stack, on the tokens that are present."""
    letters = {name: np.asarray(value, np.float64) for name, value in model.letters().items()}
    depth = model.key_weights.shape[0]
    readout = letters.pop("a", None)
    letters = {name: value if depth > 1 else value[None] for name, value in letters.items()}
    u, block = np.asarray(tokens, np.float64)[np.asarray(present)], slice(*model.block)
    for number in range(depth):
        own = {name: value[number] for name, value in letters.items()}
        mixed = layer(model.mechanism, own, u, u[:, block] if model.residual.name == "label" else u)
        if model.residual.name == "label":
            u = u.copy()
            u[:, block] += mixed
        else:
            u = mixed if model.residual.name == "none" else u + mixed
        if "W_1" in own:
            u = u + np.maximum(u @ own["W_1"].T, 0) @ own["W_2"].T
    answer = u[-1, block]
    return answer if readout is None else readout @ answer


def gru(letters, depth, tokens, present):
    """A gated recurrent unit, gate by gate."""
    w = {name: np.asarray(value, np.float64) for name, value in letters.items()}
    inputs = list(np.asarray(tokens, np.float64)[np.asarray(present)])
    for number in range(1, depth + 1):
        state, states = np.zeros(len(w["b_z1"])), []
        for token in inputs:
            driven = {g: w[f"W_{g}{number}"] @ token + w[f"b_{g}{number}"] for g in "zrh"}
            z = sigmoid(driven["z"] + w[f"U_z{number}"] @ state)
            r = sigmoid(driven["r"] + w[f"U_r{number}"] @ state)
            state = (1 - z) * state + z * np.tanh(driven["h"] + w[f"U_h{number}"] @ (r * state))
            states.append(state)
        inputs = states
    return w["a"] @ inputs[-1]
