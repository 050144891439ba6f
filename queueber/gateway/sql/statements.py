"""`POST /v1/api/sql`: statements as a client of KalamDB sends them."""

from typing import Any

import msgspec

from queueber import clock, errors
from queueber.errors import QueueberError, Unauthenticated
from queueber.gateway.bounds import Bound
from queueber.gateway.calls import Call
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.sql.failures import SqlErrorAnswer, sql_error, sql_problem, too_many
from queueber.gateway.sql.json_values import DataType, data_type, encoded_rows
from queueber.limits import MIB, SECOND_MS
from queueber.model import StatementResult
from queueber.sql.bounds import Bounds

_STATE = "sql"
_LARGE_BYTES = MIB
"""Answers that are larger are encoded one after the other."""


class SqlRequest(msgspec.Struct):
    sql: str
    """One statement, or several with semicolons between them."""
    params: list[Any] = []
    """The values of `$1`, `$2` and so on, or of each `?`; with a single statement only."""
    namespace_id: str | None = None
    """Has no effect: there are no namespaces, and names are whole."""


class SqlColumnAnswer(msgspec.Struct):
    name: str
    data_type: DataType
    index: int


class SqlResultAnswer(msgspec.Struct, omit_defaults=True):
    """What one statement answers with: rows, or a message."""

    row_count: int
    as_user: str
    """Who called."""
    schema: list[SqlColumnAnswer] | None = None
    rows: list[list[Any]] | None = None
    """Whole numbers of 64 bits are texts, bytes are base64."""
    message: str | None = None


class SqlResponse(msgspec.Struct):
    status: str
    """`success`."""
    results: list[SqlResultAnswer]
    """One for each statement, in order."""
    took: float
    """Milliseconds."""


async def run_sql(call: Call[NoQuery, SqlRequest]) -> SqlResponse:
    # A parser, and all statements: few gateways need them.
    from queueber.sql.execute import execute
    from queueber.sql.held import Held

    begun = clock.seconds()
    settings, asked = call.settings, call.body
    bound = call.state.setdefault(_STATE, Bound("calls of SQL", settings.sql_calls_max))
    assert isinstance(bound, Bound)
    if bound.used >= bound.limit:
        raise too_many(bound.limit)
    bounds = Bounds(
        seconds_max=settings.sql_timeout_ms / SECOND_MS,
        lease_seconds=settings.consume_lease_ms / SECOND_MS,
    )
    held = Held(call.client)
    try:
        with bound.taken():
            caller = (await call.client.who_am_i()).name  # before anything has taken effect
            running = execute(call.client, asked.sql, asked.params, bounds, held)
            try:
                found = await call.wait(running, counts=False)
                results = [await _answered(call, each, caller) for each in found]
            except BaseException:
                await held.give_back()  # the caller has hung up, or gets no answer
                raise
    except Unauthenticated:
        raise
    except QueueberError as error:
        raise sql_problem(error, _took(begun)) from None
    return SqlResponse("success", results, _took(begun))


async def _answered(
    call: Call[NoQuery, SqlRequest], result: StatementResult, caller: str
) -> SqlResultAnswer:
    answer = SqlResultAnswer(result.row_count, caller, message=result.message or None)
    if result.columns:
        columns = enumerate(result.columns)
        answer.schema = [SqlColumnAnswer(c.name, data_type(c.type), at) for at, c in columns]
        encoded = await encoded_rows(result)
        if len(encoded) > _LARGE_BYTES and not call.has_turn:
            await call.take_turn()
        answer.rows = msgspec.Raw(encoded)  # type: ignore[assignment]  # it is encoded already
    return answer


def _took(begun: float) -> float:
    return round((clock.seconds() - begun) * SECOND_MS, 3)


ROUTES = (
    Route(
        "POST", "/v1/api/sql", run_sql, "Run statements of SQL", "sql",
        description="See docs/sql.md. The first statement that fails ends the call; those before "
        "it have happened.",
        body=SqlRequest, answer=SqlResponse, error_body=sql_error, error_answer=SqlErrorAnswer,
        errors=(
            errors.NotFound, errors.AlreadyExists, errors.FailedPrecondition, errors.OutOfRange,
            errors.ResourceExhausted, errors.OutcomeUnknown,
        ),
        body_example={"sql": "SHOW TABLES LIKE $1", "params": ["system.topic%"]},
        answer_example={
            "status": "success",
            "results": [
                {
                    "row_count": 1,
                    "as_user": "",
                    "schema": [{"name": "table_name", "data_type": "Text", "index": 0}],
                    "rows": [["system.topics"]],
                }
            ],
            "took": 1.25,
        },
    ),
)  # fmt: skip
