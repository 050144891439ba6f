"""Codecs of calls that do many things at once."""

from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import MANY_MAX, PUBLISH_TOPICS_MAX
from queueber.model import Added, GroupAck, QueueSteps, Together, TogetherDone
from queueber.schema import wire
from queueber.wire.items import (
    read_add,
    read_added,
    read_fail_outcomes,
    read_results_of,
    write_add,
    write_added,
    write_fail_outcomes,
)
from queueber.wire.lists import read_list
from queueber.wire.messages import (
    read_optional,
    read_publications,
    read_published,
    write_publication,
    write_published,
)

_STEPS = wire.QueueSteps.schema.fields
_ADD, _COMPLETE, _FAIL = _STEPS["add"], _STEPS["complete"], _STEPS["fail"]


def read_together(source: Any) -> Together:
    return Together(
        read_publications(source.publications),
        [_read_ack(each) for each in read_list("acks", source.acks, PUBLISH_TOPICS_MAX)],
        [_read_steps(each) for each in read_list("queues", source.queues, PUBLISH_TOPICS_MAX)],
    )


def write_together(target: Any, together: Together) -> None:
    publications = target.init("publications", len(together.publications))
    for at, publication in enumerate(together.publications):
        write_publication(publications[at], publication)
    acks = target.init("acks", len(together.acks))
    for at, ack in enumerate(together.acks):
        _write_ack(acks[at], ack)
    queues = target.init("queues", len(together.queues))
    for at, steps in enumerate(together.queues):
        _write_steps(queues[at], steps)


def _read_ack(source: Any) -> GroupAck:
    return GroupAck(
        source.topic,
        source.group,
        source.partition,
        source.offset,
        source.lease,
        read_list("offsets", source.offsets, MANY_MAX),
        read_optional("firstOffset", source.firstOffset),
    )


def _write_ack(target: Any, ack: GroupAck) -> None:
    target.topic = ack.topic
    target.group = ack.group
    target.partition = ack.partition
    target.offset = ack.offset
    target.lease = ack.lease
    target.offsets = list(ack.offsets)
    if ack.first_offset is not None:
        target.firstOffset = ack.first_offset


def _read_steps(source: Any) -> QueueSteps:
    steps = QueueSteps(source.queue)
    has = source._has_by_field
    if has(_ADD):
        steps.add = read_add(source.add)
    if has(_COMPLETE):
        complete = source.complete
        if len(complete.counts):
            raise InvalidArgument("complete.counts: name the items of this call by their ids")
        steps.completed = read_list("complete.ids", complete.ids, MANY_MAX)
        steps.completed_leases = read_list("complete.leases", complete.leases, MANY_MAX)
        steps.results = read_results_of(complete)
    if has(_FAIL):
        fail = source.fail
        steps.failed = read_list("fail.ids", fail.ids, MANY_MAX)
        steps.failed_leases = read_list("fail.leases", fail.leases, MANY_MAX)
        steps.errors = read_list("fail.errors", fail.errors, MANY_MAX)
        steps.delays_ms = read_list("fail.delaysMs", fail.delaysMs, MANY_MAX)
    return steps


def _write_steps(target: Any, steps: QueueSteps) -> None:
    target.queue = steps.queue
    if steps.add is not None:
        write_add(target.init("add"), steps.add, packed=True)
    if steps.completed:
        complete = target.init("complete")
        complete.ids = list(steps.completed)
        complete.leases = list(steps.completed_leases)
        complete.results = list(steps.results)
    if steps.failed:
        fail = target.init("fail")
        fail.ids = list(steps.failed)
        fail.leases = list(steps.failed_leases)
        fail.errors = list(steps.errors)
        fail.delaysMs = list(steps.delays_ms)


def write_together_done(target: Any, done: TogetherDone) -> None:
    published = target.init("published", len(done.published))
    for at, each in enumerate(done.published):
        write_published(published[at], each)
    added = target.init("added", len(done.added))
    for at, own in enumerate(done.added):
        write_added(added[at], own or Added([]), id_runs=True)
    failed = target.init("failed", len(done.failed))
    for at, outcomes in enumerate(done.failed):
        write_fail_outcomes(failed[at], outcomes)


def read_together_done(source: Any) -> TogetherDone:
    return TogetherDone(
        [read_published(each) for each in source.published],
        [read_added(each) for each in source.added],
        [read_fail_outcomes(each) for each in source.failed],
    )
