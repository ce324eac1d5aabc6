"""Which cases of a table run always, and which in `make test-slow` only."""

import pytest


def mostly_slow(cases, kept):
    """All cases as parameters; those that are not `kept` (by themselves, or by their first value) are marked slow."""
    rows = [case if isinstance(case, tuple) else (case,) for case in cases]
    assert {row[0] for row in rows} >= set(kept), "a case that is to be kept is not there"
    return [pytest.param(*row, marks=() if row[0] in kept else pytest.mark.slow) for row in rows]
