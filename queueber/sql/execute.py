"""Runs statements, one after the other, each as a call of the awaited client.

What a caller may do is what its client may do: nothing is decided here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from queueber.client import AsyncClient
from queueber.errors import OutcomeUnknown, QueueberError, ResourceExhausted
from queueber.limits import KIB
from queueber.sql import describe, groups, queries, show, topics
from queueber.sql import statements as made
from queueber.sql.bounds import Bounds
from queueber.sql.parser import parse
from queueber.sql.printer import printed
from queueber.sql.results import StatementResult

_Run = Callable[[AsyncClient, Any, Bounds], Awaitable[StatementResult]]

RUNS: dict[type, _Run] = {
    made.CreateTopic: topics.create,
    made.DropTopic: topics.drop,
    made.ClearTopic: topics.clear,
    made.SetTopic: topics.change,
    made.ClearRetention: topics.clear_retention,
    made.AddSource: topics.add_source,
    made.DropSource: topics.drop_source,
    made.CreateNamespace: topics.create_namespace,
    made.Consume: groups.consume,
    made.Ack: groups.ack,
    made.ResetGroup: groups.reset,
    made.DropGroup: groups.drop,
    made.Show: show.show,
    made.Describe: describe.describe,
}
"""Who runs which statement. Queries are apart: only they have parameters left."""

_LOOKS = (made.Select, made.Show, made.Describe)
_NOTE_CHARS_MAX = 200
_LONG_CHARS = 4 * KIB


async def execute(
    client: AsyncClient, text: str, params: Sequence[object] = (), bounds: Bounds | None = None
) -> list[StatementResult]:
    """What each statement of a text answers with.

    The whole text is parsed before the first statement is run. The first one that fails ends it:
    those before it have happened, and a note of the error says which one it was.
    """
    bounds = bounds or Bounds()
    if len(text) > _LONG_CHARS:
        # What takes milliseconds must not keep others who share the loop from theirs.
        statements = await asyncio.to_thread(parse, text, params, bounds)
    else:
        statements = parse(text, params, bounds)
    results: list[StatementResult] = []
    give_up_at = asyncio.get_running_loop().time() + bounds.seconds_max
    left = bounds.answer_bytes_max
    for number, statement in enumerate(statements, 1):
        try:
            result = await run(client, statement, params, bounds, give_up_at)
            left -= _size(result)
            if left < 0:
                raise ResourceExhausted(
                    f"rows: the answer has more than {bounds.answer_bytes_max} bytes; ask for less"
                )
        except QueueberError as error:
            if len(statements) > 1:
                error.add_note(f"statement {number} of {len(statements)}: {_noted(statement)}")
            raise
        results.append(result)
    return results


async def run(
    client: AsyncClient,
    statement: made.Statement,
    params: Sequence[object],
    bounds: Bounds,
    give_up_at: float,
) -> StatementResult:
    """What one statement answers with, if it does so before `give_up_at` of the loop's clock."""
    try:
        async with asyncio.timeout_at(give_up_at):
            if isinstance(statement, made.Select):
                return await queries.select(client, statement, params, bounds)
            return await RUNS[type(statement)](client, statement, bounds)
    except TimeoutError:
        sentence = f"it took longer than {bounds.seconds_max:g} seconds"
        if isinstance(statement, _LOOKS):
            raise ResourceExhausted(f"sql: {sentence}; ask for less") from None
        raise OutcomeUnknown(f"{sentence}, and may or may not have taken effect") from None


def _size(result: StatementResult) -> int:
    """About how many bytes the values have."""
    return sum(
        len(value) if isinstance(value, str | bytes | list | dict) else 8
        for row in result.rows
        for value in row
    )


def _noted(statement: made.Statement) -> str:
    shown = " ".join(printed(statement).split())
    return shown if len(shown) <= _NOTE_CHARS_MAX else f"{shown[:_NOTE_CHARS_MAX]}…"
