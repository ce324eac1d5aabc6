"""`iclab check`: does a user's world, model, loss, probe, experiment and claim keep to what the laboratory relies
on?
"""

from iclab.conformance.files import check_file
from iclab.conformance.findings import Finding

__all__ = ["Finding", "check_file"]
