"""Train one model and look at its attention before and after training.

The prompt is ten examples (pattern, label) and a query; the model must answer with the label that the query's pattern
has in this prompt. An untrained model looks everywhere; a trained one looks at the examples that share the query's
pattern.

    python examples/01_attention.py
"""

import jax
import numpy as np

from iclab.authoring import Lab, Recipe, Training, hinge
from iclab.models.softmax_transformer import SoftmaxTransformerSettings
from iclab.patterns import orthogonal_patterns
from iclab.worlds.classification import Classification
from iclab.worlds.tasks import cyclic_tasks

patterns = orthogonal_patterns(8, relevant=4, irrelevant=4, strength=3.0)
world = Classification(
    patterns, cyclic_tasks(4), label_embedding=np.array([1.0]), matching_fraction=0.8, context_length=10
)
model_settings = SoftmaxTransformerSettings(initial_scale=0.1, key_width=12, value_width=12, neurons=40)

lab = Lab("example", settings=None, seeds=[0])
trained = lab.train("attention", Recipe(world, model_settings, Training(step_size=1.0, batch=32)), 200, loss=hinge)
before, after = model_settings.init(jax.random.key(0), world), trained.model(seed=0)

prompt = world.sample(jax.random.key(7), 0)
answers = [model(prompt) for model in (before, after)]
losses = trained.history["training_loss"].squeeze()
print(f"training loss {losses[1]:.3f} -> {losses[-1]:.3f}")
print(f"the query has pattern {prompt.pattern[-1]}; the right answer is {prompt.target:+.0f}")
print("pattern  label  attention before  after")
for place, (pattern, label) in enumerate(zip(prompt.pattern[:-1], prompt.label[:-1], strict=True)):
    shares = [float(trace.attention[place]) for _, trace in answers]
    mark = "  <- the query's pattern" if pattern == prompt.pattern[-1] else ""
    print(f"{pattern:7d}  {label:+5.0f}  {shares[0]:16.3f}  {shares[1]:5.3f}{mark}")
print(f"answers: {answers[0][0]:+.3f} before, {answers[1][0]:+.3f} after")
