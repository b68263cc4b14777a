"""From plain records to pages: what a report says as data, its charts, and the page that shows both."""

from closeknit.report.record import PrivateReport, PublicReport

__all__ = ["PrivateReport", "PublicReport"]
