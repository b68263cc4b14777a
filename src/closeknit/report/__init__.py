"""Reports: the record with their contents, their charts, and the HTML page."""

from closeknit.report.record import PrivateReport, PublicReport

__all__ = ["PrivateReport", "PublicReport"]
