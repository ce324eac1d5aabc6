"""Runs: what a command computes, where it keeps the results, and how it continues after an interruption."""
