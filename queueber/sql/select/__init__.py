"""SELECT over queues and topics: DuckDB on tables that the client reads.

    text ─▶ an engine: a process of its own ─▶ what it needs of which tables
              ▲ rows as Arrow has them             │
              └── pages of the awaited client ◀────┘

`select` is the whole of it. The rights are those of the client; the bounds those of `SelectBounds`.
"""

from queueber.sql.select.answers import Column, SelectResult
from queueber.sql.select.bounds import SelectBounds
from queueber.sql.select.process import Engines
from queueber.sql.select.select import select

__all__ = ["Column", "Engines", "SelectBounds", "SelectResult", "select"]
