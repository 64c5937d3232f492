"""The paper's tables: what they are, running them, and showing ours beside the paper's figures."""

from unskew.errors import UnskewError, nearest
from unskew.paper import tables
from unskew.paper.ours import OURS
from unskew.paper.rows import Row, Table
from unskew.paper.tables import FIGURES

TABLES = {**tables.TABLES, **OURS}
__all__ = ["FIGURES", "TABLES", "Row", "Table", "table_named"]


def table_named(name: str) -> Table:
    """A table, or what runs behind a figure."""
    known = {**TABLES, **FIGURES}
    if name not in known:
        raise UnskewError(f"the paper has no table or figure {name!r} here; {nearest(name, known)}")
    return known[name]
