"""`iclab check`: test worlds, models, losses, probes, experiments and statements of a user's file."""

from iclab.conformance.files import check_file
from iclab.conformance.findings import Finding

__all__ = ["Finding", "check_file"]
