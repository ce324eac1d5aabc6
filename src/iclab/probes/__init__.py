"""Probes: what is inside a trained model. Each is a measure on (model, prompt) or a function of the model's weights."""
