"""Runs: what is computed when a claim is asked for, where it is kept, and how it goes on after an interruption."""
