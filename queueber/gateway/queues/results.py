"""What became of items: receipts of batches, results, and the readers of results."""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.problems import problem_of
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.settings import WAIT_MS_MAX
from queueber.limits import READ_ITEMS_MAX, READER_NAME_BYTES_MAX, SECOND_MS
from queueber.model import Receipt, Result

_WaitMs = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]


class ReceiptAnswer(msgspec.Struct):
    """The counts of a batch: added = done + dead + live."""

    batch: str
    added: int
    done: int
    dead: int
    live: int
    complete: bool
    added_digest: str
    done_digest: str
    dead_digest: str


class ReceiptQuery(msgspec.Struct, forbid_unknown_fields=True):
    wait_ms: _WaitMs = 0
    """How long to wait until every item is done or dead."""


class ResultsQuery(msgspec.Struct, forbid_unknown_fields=True):
    offset: fields.Count = 0
    reader: Annotated[str, Meta(max_length=READER_NAME_BYTES_MAX)] = ""
    """Go on where this reader has acknowledged, instead of at an offset."""
    batch: Annotated[str, Meta(max_length=256)] = ""
    limit: Annotated[int, Meta(ge=1, le=READ_ITEMS_MAX)] = 100
    wait_ms: _WaitMs = 0


class ResultAnswer(msgspec.Struct):
    offset: int
    id: fields.Id
    result: fields.Contents
    completed_at_ms: int
    attempt: int
    key: str | None
    batch: str | None
    attributes: dict[str, str]


class ResultsAnswer(msgspec.Struct):
    results: list[ResultAnswer]
    next_offset: int
    """Where the next read starts."""
    missed: int
    """Results in the range that have been deleted."""


class ReaderOffset(msgspec.Struct):
    reader: str
    offset: int


class ReadersAnswer(msgspec.Struct):
    first_offset: int
    next_offset: int
    bytes: int
    readers: list[ReaderOffset]


class AckRequest(msgspec.Struct, forbid_unknown_fields=True):
    offset: fields.Count
    """The reader has read everything before it."""


async def receipt(call: Call[ReceiptQuery, None]) -> ReceiptAnswer:
    queue, batch = present_queue(call), call.names["batch"]
    if not call.query.wait_ms:
        return shown_receipt(await queue.receipt(batch))
    waiting = queue.wait_for_batch(batch, call.query.wait_ms / SECOND_MS)
    return shown_receipt(await call.wait(waiting))


def shown_receipt(found: Receipt) -> ReceiptAnswer:
    return ReceiptAnswer(
        found.batch,
        found.added,
        found.done,
        found.dead,
        found.live,
        found.complete,
        found.added_digest.hex(),
        found.done_digest.hex(),
        found.dead_digest.hex(),
    )


async def read_results(call: Call[ResultsQuery, None]) -> ResultsAnswer:
    query = call.query
    if query.wait_ms:
        call.bounds.unread.make_room()
    else:
        await call.take_turn()
    reading = present_queue(call).read_results(
        query.offset,
        reader=query.reader or None,
        batch=query.batch or None,
        limit=query.limit,
        wait=query.wait_ms / SECOND_MS,
    )
    page = await (call.wait(reading) if query.wait_ms else reading)
    found = list(map(shown_result, page.results))
    return ResultsAnswer(found, page.next_offset, page.missed)


def shown_result(result: Result) -> ResultAnswer:
    return ResultAnswer(
        result.offset,
        result.id.hex(),
        result.result,
        result.completed_at_ms,
        result.attempt,
        result.key or None,
        result.batch or None,
        dict(result.attributes),
    )


async def list_readers(call: Call[NoQuery, None]) -> ReadersAnswer:
    stats = await present_queue(call).results_stats()
    readers = [ReaderOffset(name, offset) for name, offset in sorted(stats.readers.items())]
    return ReadersAnswer(stats.first_offset, stats.next_offset, stats.bytes, readers)


async def ack_results(call: Call[NoQuery, AckRequest]) -> None:
    await present_queue(call).ack_results(call.names["reader"], call.body.offset)


async def drop_reader(call: Call[NoQuery, None]) -> None:
    name = call.names["reader"]
    if not await present_queue(call).drop_reader(name):
        raise problem_of(errors.NotFound(f"reader: there is none named {name}"))


ROUTES = (
    Route(
        "GET", "/v1/queues/{queue}/batches/{batch}", receipt, "Show a batch's receipt", "results",
        query=ReceiptQuery, answer=ReceiptAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "GET", "/v1/queues/{queue}/results", read_results, "Read results", "results",
        query=ResultsQuery, answer=ResultsAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "GET", "/v1/queues/{queue}/results/readers", list_readers,
        "Show how far each reader of results is", "results",
        answer=ReadersAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "PUT", "/v1/queues/{queue}/results/readers/{reader}", ack_results,
        "Say how far a reader is", "results",
        description="The first call registers the reader: results are deleted once all registered "
        "readers have acknowledged them.",
        body=AckRequest, status=204, errors=(errors.NotFound, errors.ResourceExhausted),
        body_example={"offset": 17},
    ),
    Route(
        "DELETE", "/v1/queues/{queue}/results/readers/{reader}", drop_reader,
        "Forget a reader of results", "results", status=204, errors=(errors.NotFound,),
    ),
)  # fmt: skip
