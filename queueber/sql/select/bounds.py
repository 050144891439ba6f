"""How much one SELECT may take."""

from dataclasses import dataclass

from queueber import limits


@dataclass(frozen=True, slots=True)
class SelectBounds:
    seconds: int = limits.SELECT_SECONDS
    """From the moment at which its turn has come."""
    table_rows: int = limits.SELECT_TABLE_ROWS_MAX
    table_bytes: int = limits.SELECT_TABLE_BYTES_MAX
    """Of all tables that it reads."""
    rows: int = limits.SELECT_ROWS_MAX
    bytes: int = limits.SELECT_ANSWER_BYTES_MAX
    """Of its answer."""
    narrows: bool = True
    """Whether tables are read no further than the statement needs. Tests switch it off, to see
    that answers stay the same."""
