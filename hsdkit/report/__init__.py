"""The visual report: one self-contained HTML file a document, written page by page."""

from hsdkit.report.guarded import GuardedReport
from hsdkit.report.writer import ReportWriter

__all__ = ["GuardedReport", "ReportWriter"]
