"""Codecs of an item that was looked for: messages to plain values and back."""

from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import ATTEMPTS_CEILING
from queueber.model import (
    Attempt,
    AttemptEnd,
    Finding,
    FoundItem,
    ItemInfo,
    ItemState,
    LeaseInfo,
    Result,
    Results,
)
from queueber.schema import wire
from queueber.wire.lists import read_list
from queueber.wire.queues import read_lease, write_lease
from queueber.wire.results import read_results, results_of, write_results
from queueber.wire.snapshots import read_peeked_item, write_peeked_item

_FIELDS = wire.FoundItem.schema.fields
_STATES = (None, ItemState.READY, ItemState.DELAYED, ItemState.LEASED, ItemState.DEAD)
_STATE_WORDS = ("unknown", "ready", "delayed", "inProgress", "dead", "done")
_DONE = _STATE_WORDS.index("done")
_ENDS = (None, AttemptEnd.FAILED, AttemptEnd.EXPIRED, AttemptEnd.DISCONNECTED)
_END_WORDS = ("unknown", "failed", "expired", "disconnected")


def write_finding(response: Any, finding: Finding) -> None:
    response.next = finding.next_offset
    target, found = response.init("found"), finding.found
    target.id = finding.id
    if found is None:
        return
    target.state = "done" if found.is_done else _STATE_WORDS[_STATES.index(found.state)]
    if found.item is not None:
        write_peeked_item(target.init("item"), found.item)
    if found.lease is not None:
        write_lease(target.init("lease"), found.lease)
    if found.result is not None:
        results = Results([found.result], found.result.offset + 1, 0)
        write_results(target.init("result"), results)
    if found.attempts:
        listed = target.init("attempts", len(found.attempts))
        for at, attempt in enumerate(found.attempts):
            listed[at].atMs = attempt.at_ms
            listed[at].end = _END_WORDS[_ENDS.index(attempt.end)]
            listed[at].error = attempt.error


def read_finding(response: Any) -> Finding:
    source = response.found
    number = source.state.raw
    if number > _DONE:
        raise InvalidArgument(f"state: {number} is none of {', '.join(_STATE_WORDS)}")
    if number == 0:
        return Finding(source.id, None, response.next)
    has = source._has_by_field
    item: ItemInfo | None = None
    lease: LeaseInfo | None = None
    result: Result | None = None
    if number == _DONE:
        (result,) = results_of(read_results(source.result)).results
    else:
        item = read_peeked_item(source.item)
    if has(_FIELDS["lease"]):
        lease = read_lease(source.lease)
    attempts = [
        Attempt(each.atMs, _end(each.end.raw), each.error)
        for each in read_list("attempts", source.attempts, ATTEMPTS_CEILING)
    ]
    state = None if number == _DONE else _STATES[number]
    return Finding(source.id, FoundItem(source.id, state, item, attempts, lease, result))


def _end(number: int) -> AttemptEnd | None:
    """One that a later server knows is not known here."""
    return _ENDS[number] if number < len(_ENDS) else None
