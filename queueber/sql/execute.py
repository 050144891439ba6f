"""Runs statements, one after the other, each as a call of the awaited client.

What a caller may do is what its client may do: nothing is decided here.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

from queueber.client import AsyncClient
from queueber.errors import OutcomeUnknown, QueueberError, ResourceExhausted
from queueber.limits import KIB
from queueber.sql import describe, groups, queries, show, topics
from queueber.sql import statements as made
from queueber.sql.bounds import Bounds
from queueber.sql.held import Held
from queueber.sql.parser import parse
from queueber.sql.printer import printed
from queueber.sql.results import StatementResult, size_of

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
    made.Ack: groups.ack,
    made.ResetGroup: groups.reset,
    made.DropGroup: groups.drop,
    made.Show: show.show,
    made.Describe: describe.describe,
}
"""Who runs which statement. Queries are apart, which have parameters left, and CONSUME, which holds
what it has leased."""

_LOOKS = (made.Select, made.Show, made.Describe)
_NOTE_CHARS_MAX = 200
_LONG_CHARS = 4 * KIB


async def execute(
    client: AsyncClient,
    text: str,
    params: Sequence[object] = (),
    bounds: Bounds | None = None,
    held: Held | None = None,
) -> list[StatementResult]:
    """What each statement of a text answers with.

    The whole text is parsed before the first statement is run. The first one that fails ends it:
    those before it have happened, and a note of the error says which one it was. What `CONSUME` has
    leased is given back then, as if the caller was cancelled: nobody has the messages. `held` is
    for callers that may fail to pass the answer on.
    """
    bounds = bounds or Bounds()
    if len(text) > _LONG_CHARS:
        # What takes milliseconds must not keep others who share the loop from theirs.
        statements = await asyncio.to_thread(parse, text, params, bounds)
    else:
        statements = parse(text, params, bounds)
    held = held or Held(client)
    try:
        return await _all(client, statements, params, bounds, held)
    except BaseException:
        await held.give_back()
        raise


async def _all(
    client: AsyncClient,
    statements: Sequence[made.Statement],
    params: Sequence[object],
    bounds: Bounds,
    held: Held,
) -> list[StatementResult]:
    results: list[StatementResult] = []
    give_up_at = asyncio.get_running_loop().time() + bounds.seconds_max
    left = bounds.answer_bytes_max
    for number, statement in enumerate(statements, 1):
        try:
            within = bounds
            if isinstance(statement, made.Consume):  # it can do with less; others are refused
                within = replace(bounds, answer_bytes_max=left)
            result = await run(client, statement, params, within, give_up_at, held)
            left -= sum(map(size_of, result.rows))
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
    held: Held | None = None,
) -> StatementResult:
    """What one statement answers with, if it does so before `give_up_at` of the loop's clock."""
    try:
        async with asyncio.timeout_at(give_up_at):
            if isinstance(statement, made.Select):
                return await queries.select(client, statement, params, bounds)
            if isinstance(statement, made.Consume):
                return await groups.consume(client, statement, bounds, held or Held(client))
            return await RUNS[type(statement)](client, statement, bounds)
    except TimeoutError:
        sentence = f"it took longer than {bounds.seconds_max:g} seconds"
        if isinstance(statement, _LOOKS):
            raise ResourceExhausted(f"sql: {sentence}; ask for less") from None
        raise OutcomeUnknown(f"{sentence}, and may or may not have taken effect") from None


def _noted(statement: made.Statement) -> str:
    shown = " ".join(printed(statement).split())
    return shown if len(shown) <= _NOTE_CHARS_MAX else f"{shown[:_NOTE_CHARS_MAX]}…"
