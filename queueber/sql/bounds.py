"""How much one call of SQL may ask for, and how much it may answer."""

from dataclasses import dataclass

from queueber.consuming.consume import LEASE_SECONDS
from queueber.limits import (
    SQL_ANSWER_BYTES_MAX,
    SQL_CHARS_MAX,
    SQL_PARAMS_MAX,
    SQL_ROWS_MAX,
    SQL_SECONDS_MAX,
    SQL_STATEMENTS_MAX,
)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one call: those of a door, or of a program that runs its own statements."""

    chars_max: int = SQL_CHARS_MAX
    """Of the text."""
    statements_max: int = SQL_STATEMENTS_MAX
    params_max: int = SQL_PARAMS_MAX
    rows_max: int = SQL_ROWS_MAX
    """Of the answer to one statement."""
    answer_bytes_max: int = SQL_ANSWER_BYTES_MAX
    """Of the values of all rows that the call answers with."""
    seconds_max: float = SQL_SECONDS_MAX
    """All statements together."""
    lease_seconds: float = LEASE_SECONDS
    """How long `CONSUME` with a group has its messages."""
