"""What a person looks at: the report of a run as one HTML file."""

from unskew.pages.report import report

__all__ = ["report"]
