"""Queries: DuckDB works them out, if it is installed."""

from collections.abc import Sequence

from queueber.client import AsyncClient
from queueber.errors import FailedPrecondition
from queueber.sql.bounds import Bounds
from queueber.sql.results import SqlColumn, StatementResult
from queueber.sql.statements import Select


async def select(
    client: AsyncClient, statement: Select, params: Sequence[object], bounds: Bounds
) -> StatementResult:
    try:
        from queueber.sql import select as engine  # DuckDB and Arrow, which few programs need
    except ModuleNotFoundError as error:
        raise FailedPrecondition(
            f"{error.name} is not installed, and SELECT needs it: pip install 'queueber[sql]'"
        ) from None
    found = await engine.select(client, statement.text, params, bounds)
    columns = [SqlColumn(each.name, each.type) for each in found.columns]
    return StatementResult(columns, found.rows, len(found.rows))
