"""A real language model: loading it, word tasks, prompts, what happens inside, and changing it there."""
