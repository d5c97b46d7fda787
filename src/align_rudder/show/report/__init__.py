"""The report: one HTML page that shows what a model found and what it does with episodes."""

from align_rudder.show.report.data import report_data
from align_rudder.show.report.page import write_report

__all__ = ["report_data", "write_report"]
