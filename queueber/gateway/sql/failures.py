"""Errors of SQL in KalamDB's form: a status, and an error with code, message and details."""

from dataclasses import dataclass
from typing import Any

import msgspec

from queueber import errors
from queueber.errors import QueueberError
from queueber.gateway.problems import RETRY_SECONDS, Problem, problem_of
from queueber.sql.errors import EmptySql, InvalidParameter, InvalidSql, ParamsWithBatch


class SqlErrorDetail(msgspec.Struct):
    code: str
    message: str
    details: str | None = None
    """Of several statements: which one failed. Those before it have happened."""


class SqlErrorAnswer(msgspec.Struct):
    """Why nothing came of the statements, or of one of them."""

    status: str
    """`error`."""
    results: list[Any]
    """Empty."""
    took: float
    """Milliseconds."""
    error: SqlErrorDetail


EXECUTION = "SQL_EXECUTION_ERROR"
TOO_MANY = "RATE_LIMIT_EXCEEDED"
_CODES: tuple[tuple[type[QueueberError], str], ...] = (
    (ParamsWithBatch, "PARAMS_WITH_BATCH"),
    (EmptySql, "EMPTY_SQL"),
    (InvalidSql, "INVALID_SQL"),
    (InvalidParameter, "INVALID_PARAMETER"),
    (errors.NotFound, "TABLE_NOT_FOUND"),
    (errors.PermissionDenied, "PERMISSION_DENIED"),
)

_ARGUMENTS = {"sql": "INVALID_SQL", "params": "INVALID_PARAMETER"}
"""The argument that a sentence is about, and its code."""
_NO_TABLE = "sql: there is no table "
"""How a query begins its sentence that names a table which nobody could have."""
_SENTENCE_CHARS_MAX = 1_000
"""Names of any length are in statements, and so in sentences about them."""
_OF_GATEWAY = {"INVALID_ARGUMENT": "INVALID_PARAMETER", "INTERNAL": "INTERNAL_ERROR"}
"""Where KalamDB has another word for what the gateway refuses before it looks at the statement."""


@dataclass(slots=True)
class SqlProblem(Problem):
    """An error of SQL, with what only its answer tells."""

    took: float = 0.0
    details: str | None = None


def sql_problem(error: QueueberError, took: float) -> SqlProblem:
    """The answer for what the parser, the client or the server refused."""
    problem = problem_of(error)
    code = next((code for kind, code in _CODES if isinstance(error, kind)), EXECUTION)
    if code == EXECUTION and isinstance(error, errors.InvalidArgument):
        code = _ARGUMENTS.get(problem.detail.partition(":")[0], EXECUTION)
    if problem.detail.startswith(_NO_TABLE):
        code, problem.status = "TABLE_NOT_FOUND", 404
    if problem.status == 429:
        code = TOO_MANY
    notes = getattr(error, "__notes__", None)
    sentence = problem.detail
    if len(sentence) > _SENTENCE_CHARS_MAX:
        half = _SENTENCE_CHARS_MAX // 2
        sentence = f"{sentence[:half]}…{sentence[-half:]}"
    return SqlProblem(
        problem.status,
        code,
        sentence,
        problem.headers,
        took=took,
        details="; ".join(notes) if notes else None,
    )


def too_many(count: int) -> SqlProblem:
    sentence = f"the gateway is busy: {count} calls of SQL are under way; retry"
    return SqlProblem(429, TOO_MANY, sentence, {"retry-after": str(RETRY_SECONDS)})


def sql_error(problem: Problem) -> tuple[int, bytes]:
    """The status and the body of an error, also of one that the gateway itself raised."""
    if isinstance(problem, SqlProblem):
        took, error = problem.took, SqlErrorDetail(problem.code, problem.detail, problem.details)
    else:
        code = _OF_GATEWAY.get(problem.code, problem.code)
        took, error = 0.0, SqlErrorDetail(code, problem.detail)
    return problem.status, msgspec.json.encode(SqlErrorAnswer("error", [], took, error))
