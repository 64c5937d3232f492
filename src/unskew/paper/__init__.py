"""The paper's tables: what they are, running them, and showing ours beside the paper's figures."""

from unskew.errors import UnskewError, nearest
from unskew.paper.tables import TABLES, Row, Table

__all__ = ["TABLES", "Row", "Table", "table_named"]


def table_named(name: str) -> Table:
    if name not in TABLES:
        raise UnskewError(f"the paper has no table {name!r} here; {nearest(name, TABLES)}")
    return TABLES[name]
