"""SELECT: read a statement, the tables that it needs, and its answer."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from queueber.client import AsyncClient
from queueber.errors import InvalidArgument, QueueberError, ResourceExhausted
from queueber.limits import SELECT_TEXT_BYTES_MAX
from queueber.sql.select.answers import SelectResult
from queueber.sql.select.awaiting import on_thread
from queueber.sql.select.bounds import SelectBounds
from queueber.sql.select.parameters import pack_parameters
from queueber.sql.select.process import Engine, EngineLate, Engines, shared_engines
from queueber.sql.select.tables.budget import Budget
from queueber.sql.select.tables.sources import Sources

_DEFAULT_BOUNDS = SelectBounds()


async def select(
    client: AsyncClient,
    text: str,
    params: Sequence[object] = (),
    bounds: SelectBounds = _DEFAULT_BOUNDS,
    *,
    engines: Engines | None = None,
) -> SelectResult:
    """Run one SELECT with the rights of the client, on engines that all of the program share,
    unless others are given.

    Read only: there is nothing that a statement could change. Raises `InvalidArgument` for what is
    wrong with it or with the values that it reads, `NotFound` for tables that are not there or not
    for this client, `ResourceExhausted` above a bound of rows, bytes, memory or time, and
    `Unavailable` if too many wait.
    """
    parameters = _checked(text, params)
    engines = engines or shared_engines()
    try:
        async with engines.turn(bounds.seconds) as engine:
            return await _run(client, text, parameters, bounds, engine, engines)
    except EngineLate:
        raise ResourceExhausted(
            f"the SELECT took longer than {bounds.seconds} seconds; let it read fewer rows, with a "
            "WHERE on ts or offset, or a LIMIT"
        ) from None


def _checked(text: str, params: Sequence[object]) -> str:
    if not isinstance(text, str):
        raise InvalidArgument(f"sql: is a {type(text).__name__}, not text")
    if "\0" in text:
        raise InvalidArgument("sql: has a NUL character in it")
    try:
        parameters = pack_parameters(params)
        size = len(text.encode()) + len(parameters.encode())
    except UnicodeEncodeError:
        raise InvalidArgument("sql: is no valid text; it has half of a character in it") from None
    if size > SELECT_TEXT_BYTES_MAX:
        raise InvalidArgument(
            f"sql: statement and parameters have {size} bytes; the limit is {SELECT_TEXT_BYTES_MAX}"
        )
    return parameters


async def _run(
    client: AsyncClient,
    text: str,
    parameters: str,
    bounds: SelectBounds,
    engine: Engine,
    engines: Engines,
) -> SelectResult:
    threads = engines.threads
    needs = await on_thread(threads, partial(engine.ask, text, parameters, bounds))
    sources = Sources(client, Budget(bounds))
    try:
        await sources.open(needs)
        for need in needs:
            await on_thread(threads, partial(engine.begin_table, need))
            async for batch in sources.batches(need):
                await on_thread(threads, partial(engine.put, batch))
        # What it computes may take long: the server need not keep snapshots for that.
        await sources.aclose()
        return await on_thread(threads, engine.run)
    except QueueberError as error:
        with suppress(QueueberError):
            await sources.aclose()
            if not isinstance(error, EngineLate):
                await on_thread(threads, engine.drop)
        raise
