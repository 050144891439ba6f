"""Queries: DuckDB works them out, if it is installed."""

from collections.abc import Sequence
from math import ceil

from queueber.client import AsyncClient
from queueber.errors import FailedPrecondition
from queueber.limits import SELECT_ANSWER_BYTES_MAX, SELECT_ROWS_MAX, SELECT_SECONDS
from queueber.sql.bounds import Bounds
from queueber.sql.results import SqlColumn, StatementResult
from queueber.sql.statements import Select


async def select(
    client: AsyncClient, statement: Select, params: Sequence[object], bounds: Bounds
) -> StatementResult:
    try:
        # DuckDB and Arrow, which few programs need.
        from queueber.sql.select import SelectBounds
        from queueber.sql.select import select as select_rows
    except ModuleNotFoundError as error:
        raise FailedPrecondition(
            f"{error.name} is not installed, and SELECT needs it: pip install 'queueber[sql]'"
        ) from None
    within = SelectBounds(
        seconds=min(SELECT_SECONDS, ceil(bounds.seconds_max)),
        rows=min(SELECT_ROWS_MAX, bounds.rows_max),
        bytes=min(SELECT_ANSWER_BYTES_MAX, bounds.answer_bytes_max),
    )
    found = await select_rows(client, statement.text, params, within)
    columns = [SqlColumn(each.name, each.type) for each in found.columns]
    return StatementResult(columns, found.rows, len(found.rows))
