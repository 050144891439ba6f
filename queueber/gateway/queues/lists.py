"""What a queue has beside items, for those who watch it: leases and batches."""

from typing import Annotated

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.gateway.calls import Call
from queueber.gateway.queues import fields
from queueber.gateway.queues.named_queue import present_queue
from queueber.gateway.queues.results import ReceiptAnswer, shown_receipt
from queueber.gateway.routes import Route
from queueber.limits import BATCH_NUMBER_MAX, BATCHES_LIST_MAX, LEASES_LIST_MAX
from queueber.model import LeaseInfo


class LeasesQuery(msgspec.Struct, forbid_unknown_fields=True):
    after: Annotated[str, Meta(pattern="^([0-9a-fA-F]{32})?$")] = ""
    """`next` of another page."""
    limit: Annotated[int, Meta(ge=1, le=LEASES_LIST_MAX)] = 100


class LeaseAnswer(msgspec.Struct):
    lease: fields.Id
    holder: str | None
    """Who polled; null if the server does not remember."""
    items: int
    """Those that it still holds."""
    polled_at_ms: int
    expires_at_ms: int


class LeasesAnswer(msgspec.Struct):
    leases: list[LeaseAnswer]
    next: fields.Id | None


class BatchesQuery(msgspec.Struct, forbid_unknown_fields=True):
    before: Annotated[int, Meta(ge=0, le=BATCH_NUMBER_MAX)] = 0
    """`next` of another page; 0: the newest."""
    limit: Annotated[int, Meta(ge=1, le=BATCHES_LIST_MAX)] = 100


class BatchesAnswer(msgspec.Struct):
    batches: list[ReceiptAnswer]
    """Newest first."""
    next: int | None


async def list_leases(call: Call[LeasesQuery, None]) -> LeasesAnswer:
    after = bytes.fromhex(call.query.after)
    page = await present_queue(call).leases(limit=call.query.limit, after=after)
    return LeasesAnswer(list(map(shown_lease, page.leases)), page.next.hex() or None)


def shown_lease(lease: LeaseInfo) -> LeaseAnswer:
    return LeaseAnswer(
        lease.lease_id.hex(),
        lease.holder or None,
        lease.items,
        lease.polled_at_ms,
        lease.expires_at_ms,
    )


async def list_batches(call: Call[BatchesQuery, None]) -> BatchesAnswer:
    page = await present_queue(call).batches(limit=call.query.limit, before=call.query.before)
    return BatchesAnswer([shown_receipt(each.receipt) for each in page.batches], page.next or None)


ROUTES = (
    Route(
        "GET", "/v1/queues/{queue}/leases", list_leases, "List leases, oldest first", "leases",
        query=LeasesQuery, answer=LeasesAnswer, errors=(errors.NotFound,),
    ),
    Route(
        "GET", "/v1/queues/{queue}/batches", list_batches, "List batches, newest first", "results",
        query=BatchesQuery, answer=BatchesAnswer, errors=(errors.NotFound,),
    ),
)  # fmt: skip
