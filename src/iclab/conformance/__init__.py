"""`iclab check`: test a user's worlds, models, losses, probes, experiments and claims against iclab's conventions."""

from iclab.conformance.files import check_file
from iclab.conformance.findings import Finding

__all__ = ["Finding", "check_file"]
