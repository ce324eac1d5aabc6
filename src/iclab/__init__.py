"""iclab, the in-context lab: a laboratory for the theory of in-context learning."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iclab.robustness import Robustness
    from iclab.runs.compare import Comparison, compare
    from iclab.runs.opened import Run, open_run
    from iclab.runs.reproduce import reproduce
    from iclab.runs.robust import robust
    from iclab.runs.robust_results import Robust, open_robust
    from iclab.runs.saved import load_model
    from iclab.runs.sweep import sweep
    from iclab.runs.sweep_results import Sweep, open_sweep

    __version__: str

__all__ = [
    "Comparison", "Robust", "Robustness", "Run", "Sweep", "__version__", "compare", "load_model", "open_robust",
    "open_run", "open_sweep", "reproduce", "robust", "sweep",
]  # fmt: skip

# Loaded on first use: JAX takes seconds to import, and `iclab --help` does not need it.
_PLACES = {
    "Run": "iclab.runs.opened",
    "compare": "iclab.runs.compare",
    "Comparison": "iclab.runs.compare",
    "reproduce": "iclab.runs.reproduce",
    "robust": "iclab.runs.robust",
    "Robust": "iclab.runs.robust_results",
    "Robustness": "iclab.robustness",
    "open_robust": "iclab.runs.robust_results",
    "sweep": "iclab.runs.sweep",
    "Sweep": "iclab.runs.sweep_results",
    "load_model": "iclab.runs.saved",
    "open_run": "iclab.runs.opened",
    "open_sweep": "iclab.runs.sweep_results",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("iclab")
    elif name in _PLACES:
        value = getattr(importlib.import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'iclab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
