"""How fast a training step is, beside what the field would write and beside what the machine could do."""
