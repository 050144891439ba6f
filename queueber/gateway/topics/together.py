"""Steps over queues and topics in one commit: consume, transform and produce."""

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from queueber import errors
from queueber.client import AsyncTogether
from queueber.gateway.calls import Call
from queueber.gateway.queues.fields import QUEUE_NAME_PATTERN, Batch, Contents, DelayMs, Id
from queueber.gateway.queues.items import NewItem
from queueber.gateway.routes import NoQuery, Route
from queueber.gateway.topics import fields
from queueber.gateway.topics.messages import PublishAnswer, new_messages, shown_published
from queueber.gateway.topics.publish import TopicPublication, options_of
from queueber.limits import ADD_ITEMS_MAX, MANY_MAX, PUBLISH_TOPICS_MAX, QUEUES_MAX, SECOND_MS

_QueueName = Annotated[str, Meta(pattern=QUEUE_NAME_PATTERN)]


class GroupStep(msgspec.Struct, forbid_unknown_fields=True):
    """A group is done with messages. Of an ordered group, these and all before them; it must not be
    done with the first of them yet. Of a shared group, these, under a lease."""

    topic: fields.TopicName
    group: fields.GroupName
    offsets: Annotated[list[fields.Offset], Meta(min_length=1, max_length=MANY_MAX)]
    partition: fields.Partition = 0
    lease: Id | None = None


class CompletedItem(msgspec.Struct, forbid_unknown_fields=True):
    id: Id
    lease: Id
    result: Contents = b""


class FailedItem(msgspec.Struct, forbid_unknown_fields=True):
    id: Id
    lease: Id
    error: str = ""
    delay_ms: DelayMs | None = None


class QueueStep(msgspec.Struct, forbid_unknown_fields=True):
    """What happens in one queue, which must exist."""

    add: Annotated[list[NewItem], Meta(max_length=ADD_ITEMS_MAX)] = []
    batch: Batch | None = None
    """Of the items that are added."""
    complete: Annotated[list[CompletedItem], Meta(max_length=MANY_MAX)] = []
    fail: Annotated[list[FailedItem], Meta(max_length=MANY_MAX)] = []


class TogetherRequest(msgspec.Struct, forbid_unknown_fields=True):
    publications: Annotated[list[TopicPublication], Meta(max_length=PUBLISH_TOPICS_MAX)] = []
    acks: Annotated[list[GroupStep], Meta(max_length=MANY_MAX)] = []
    queues: Annotated[dict[_QueueName, QueueStep], Meta(max_length=QUEUES_MAX)] = {}
    """By name."""


class QueueDone(msgspec.Struct):
    ids: list[Id]
    """Of the items that were added."""
    duplicates: list[bool]
    failed: list[Literal["retried", "died", "refused"]]
    """What became of the items that failed."""


class TogetherAnswer(msgspec.Struct):
    """The answers, in the order of the steps."""

    published: list[PublishAnswer]
    queues: dict[str, QueueDone]


async def together(call: Call[NoQuery, TogetherRequest]) -> TogetherAnswer:
    body = call.body
    async with call.client.together() as step:
        for publication in body.publications:
            messages = new_messages(publication.messages)
            step.publish(publication.topic, messages, **options_of(publication))
        for ack in body.acks:
            step.ack_offsets(
                ack.topic, ack.group, ack.offsets, partition=ack.partition, lease=ack.lease
            )
        for name, steps in body.queues.items():
            _take(step, name, steps)
    return _answer(step, body.queues)


def _take(step: AsyncTogether, queue: str, steps: QueueStep) -> None:
    if items := steps.add:
        keys = [item.key for item in items]
        step.add(
            queue,
            [item.contents for item in items],
            delay=[item.delay_ms / SECOND_MS for item in items],
            priority=[item.priority for item in items],
            key=keys if any(keys) else None,
            attributes=[item.attributes for item in items],
            batch=steps.batch,
        )
    for done in steps.complete:
        step.complete(done.id, done.result, queue=queue, lease=done.lease)
    for failed in steps.fail:
        delay = None if failed.delay_ms is None else failed.delay_ms / SECOND_MS
        step.fail(failed.id, failed.error, delay=delay, queue=queue, lease=failed.lease)


def _answer(step: AsyncTogether, names: Iterable[str]) -> TogetherAnswer:
    done, queues = step.done, {}
    for name in names:
        added = done.added.get(name)
        queues[name] = QueueDone(
            [] if added is None else [each.hex() for each in added],
            [] if added is None else list(added.duplicates),
            [each.value for each in done.failed.get(name, [])],
        )
    return TogetherAnswer([shown_published(each) for each in done.published], queues)


_LEASE = "0192f0c1a2b37c4d8e5f60718293a4c7"
_ID = "0192f0c1a2b37c4d8e5f60718293a4b5"

ROUTES = (
    Route(
        "POST", "/v1/together", together, "Take steps over queues and topics, all or none",
        "together",
        description="Everything happens in one commit, or nothing. 412 if a lease does not hold "
        "an item or a message any more, or a condition of a publication fails; 409 if another "
        "consumer of an ordered group was faster.",
        body=TogetherRequest, answer=TogetherAnswer,
        errors=(
            errors.NotFound, errors.Aborted, errors.FailedPrecondition, errors.OutOfRange,
            errors.ResourceExhausted, errors.OutcomeUnknown,
        ),
        body_example={
            "acks": [{"topic": "bought", "group": "packing", "offsets": [17]}],
            "publications": [{"topic": "packed", "messages": [{"payload": "aGVsbG8="}]}],
            "queues": {
                "parcels": {
                    "add": [{"contents": "aGVsbG8="}],
                    "complete": [{"id": _ID, "lease": _LEASE, "result": "aGVsbG8="}],
                }
            },
        },
    ),
)  # fmt: skip
