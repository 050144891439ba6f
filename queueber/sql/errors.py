"""What can be wrong with a text of SQL. All are `InvalidArgument`: nothing was run."""

from queueber.errors import InvalidArgument


class InvalidSql(InvalidArgument):
    """The text cannot be read; `numbers` has line and column."""


class EmptySql(InvalidSql):
    """There is no statement in the text."""


class InvalidParameter(InvalidArgument):
    """A parameter is missing, too many, or of a kind that does not go where it stands."""


class ParamsWithBatch(InvalidParameter):
    """Several statements were sent with parameters."""


def at(line: int, column: int, sentence: str) -> InvalidSql:
    return InvalidSql(f"line {line}, column {column}: {sentence} [line={line} column={column}]")
