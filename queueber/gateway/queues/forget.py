"""Forgetting batches, with their receipts, before the queue does."""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import problem_of
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.routes import NoQuery, Route
from queueber.limits import BATCH_KEEP_MS_MAX, SECOND_MS


class ForgetRequest(msgspec.Struct, forbid_unknown_fields=True):
    unchanged_for_ms: Annotated[int, Meta(ge=0, le=BATCH_KEEP_MS_MAX)]
    """Batches that changed later stay; 0: none does."""


class ForgetAnswer(msgspec.Struct):
    batches: int
    """How many were forgotten."""


async def forget_batch(call: Call[NoQuery, None]) -> None:
    name = call.names["batch"]
    if not await present_queue(call).forget_batch(name):
        raise problem_of(errors.NotFound(f"batch: the queue knows none named {name}"))


async def forget_batches(call: Call[NoQuery, ForgetRequest]) -> ForgetAnswer:
    unchanged_for = call.body.unchanged_for_ms / SECOND_MS
    return ForgetAnswer(await present_queue(call).forget_batches(unchanged_for=unchanged_for))


ROUTES = (
    Route(
        "DELETE", "/v1/queues/{queue}/batches/{batch}", forget_batch, "Forget a complete batch",
        "results", description="412 while it has live items, or a callback whose item was not "
        "added. Its items and results stay.",
        status=204, errors=(errors.NotFound, errors.FailedPrecondition, errors.OutcomeUnknown),
    ),
    Route(
        "POST", "/v1/queues/{queue}/forget-batches", forget_batches,
        "Forget complete batches that did not change for a while", "results",
        body=ForgetRequest, answer=ForgetAnswer, errors=(errors.NotFound, errors.OutcomeUnknown),
        body_example={"unchanged_for_ms": 86400000}, answer_example={"batches": 3},
    ),
)  # fmt: skip
