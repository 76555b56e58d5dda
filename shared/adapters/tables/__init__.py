"""Table Storage: entities and tables, and the fleet's state in them."""

from __future__ import annotations

from shared.adapters.tables.clusters import CLUSTERS
from shared.adapters.tables.state import TABLES, TablesState
from shared.adapters.tables.storage import table_service, table_time

__all__ = ["CLUSTERS", "TABLES", "TablesState", "table_service", "table_time"]
