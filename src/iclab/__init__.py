"""iclab, the in-context lab: a laboratory for the theory of in-context learning."""

from importlib.metadata import version

from iclab.runs.sweep_results import Sweep, open_sweep
from iclab.runs.reproduce import Run, reproduce
from iclab.runs.sweep import sweep

__version__ = version("iclab")
__all__ = ["Run", "Sweep", "__version__", "open_sweep", "reproduce", "sweep"]
