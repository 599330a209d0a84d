"""The report as one self-contained HTML page: no network, no library, works from disk."""

from embinit.reports.writers.html.page import page

__all__ = ["page"]
