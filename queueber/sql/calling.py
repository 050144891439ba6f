"""What `client.sql` calls: the statements run on the loop of the client's connection.

That is an asyncio loop, whether the program awaits, blocks, or runs trio.
"""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future

from queueber.client import AsyncClient
from queueber.client.calls.client_calls import ClientCalls
from queueber.model import SqlAnswer, StatementResult
from queueber.sql.bounds import Bounds
from queueber.sql.execute import execute, run
from queueber.sql.statements import Statement


def begin(calls: ClientCalls, text: str, params: Sequence[object]) -> "Future[SqlAnswer]":
    """Run the statements of a text; cancelling the future ends them."""
    client = AsyncClient._over(calls)

    async def all_of_them() -> SqlAnswer:
        return SqlAnswer(await execute(client, text, params))

    return calls.connection.submit(all_of_them)


def begin_one(
    calls: ClientCalls, statement: Statement, bounds: Bounds
) -> "Future[StatementResult]":
    """Run one statement that was parsed already, with its parameters in it."""
    client = AsyncClient._over(calls)

    async def only_this() -> StatementResult:
        give_up_at = asyncio.get_running_loop().time() + bounds.seconds_max
        return await run(client, statement, (), bounds, give_up_at)

    return calls.connection.submit(only_this)
