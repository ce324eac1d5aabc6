"""iclab, the in-context lab: a laboratory for the theory of in-context learning."""

from importlib.metadata import version

from iclab.runs.reproduce import Run, reproduce

__version__ = version("iclab")
__all__ = ["Run", "__version__", "reproduce"]
