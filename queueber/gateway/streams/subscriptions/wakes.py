"""What happens to a subscription: links follow their streams, wakes begin, are claimed and end.

Functions from records to records, without a clock and without a server.
"""

import secrets
from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from queueber.gateway.streams.subscriptions.patterns import matches
from queueber.gateway.streams.subscriptions.records.positions import NOWHERE, Position, Tail
from queueber.gateway.streams.subscriptions.records.record import LINKS_MAX, Link, Record, Wake

Tails = Mapping[str, Tail | None]


class StreamState(msgspec.Struct):
    """A stream of a subscription, as workers are told."""

    path: str
    link_type: str
    acked_offset: str
    tail_offset: str
    has_pending: bool


def link(record: Record, path: str, at: Position, *, explicit: bool) -> Record:
    """Add a link, or another reason for one that is there."""
    present = record.links.get(path)
    if present is None:
        if len(record.links) >= LINKS_MAX:
            return record
        present = Link(at)
    changed = replace(
        present,
        is_explicit=present.is_explicit or explicit,
        is_glob=present.is_glob or not explicit,
    )
    return replace(record, links={**record.links, path: changed})


def unlink(record: Record, path: str) -> Record:
    """Take away an explicit link. What the pattern matches stays linked."""
    present = record.links.get(path)
    if present is None:
        return record
    links = dict(record.links)
    if present.is_glob or (record.pattern is not None and matches(record.pattern, path)):
        links[path] = replace(present, is_explicit=False, is_glob=True)
    else:
        del links[path]
    return replace(record, links=links)


def follow(record: Record, tails: Tails) -> Record:
    """Have links follow their streams.

    One that was deleted is linked no more, unless somebody named it: it may come again. One that
    was created again is unread, but for what it has from the stream that it is a fork of.
    """
    links = dict(record.links)
    for path, present in record.links.items():
        tail = tails.get(path)
        if tail is None:
            if path not in tails:
                continue
            if not present.is_explicit:
                del links[path]
            elif present.acked != NOWHERE:
                links[path] = replace(present, acked=NOWHERE)
        elif tail.end.origin != present.acked.origin:
            links[path] = replace(present, acked=tail.start)
    return record if links == record.links else replace(record, links=links)


def states(record: Record, ends: Mapping[str, Position]) -> list[StreamState]:
    """The streams that are linked, which end there."""
    return [
        StreamState(
            path,
            each.kind,
            each.acked.token,
            (end := ends.get(path, each.acked)).token,
            end > each.acked,
        )
        for path, each in record.links.items()
    ]


def ends_of(record: Record, tails: Tails) -> dict[str, Position]:
    found = {}
    for path, present in record.links.items():
        tail = tails.get(path)
        found[path] = present.acked if tail is None else tail.end
    return found


def pending(record: Record, tails: Tails) -> list[str]:
    """The streams with messages that are not acknowledged."""
    ends = ends_of(record, tails)
    return [path for path, each in record.links.items() if ends[path] > each.acked]


# --- wakes ----------------------------------------------------------------------------------------


def is_over(wake: Wake, now_ms: int) -> bool:
    """Whether the lease of whoever was woken has ended. A webhook that did not arrive is sent when
    its turn comes, not before."""
    return 0 < wake.lease_until_ms <= now_ms and wake.attempt_at_ms <= now_ms


def is_in_flight(record: Record, now_ms: int) -> bool:
    return record.wake is not None and not is_over(record.wake, now_ms)


def begin(record: Record, tails: Tails, now_ms: int) -> Record:
    """A new wake, with the next generation. A webhook is to be sent now."""
    is_webhook = record.type == "webhook"
    wake = Wake(
        id=f"w_{secrets.token_hex(12)}",
        begun_at_ms=now_ms,
        snapshot=ends_of(record, tails),
        lease_until_ms=now_ms + record.lease_ttl_ms if is_webhook else 0,
        attempt_at_ms=now_ms if is_webhook else 0,
    )
    return replace(record, generation=record.generation + 1, wake=wake)


def claim(record: Record, worker: str, tails: Tails, now_ms: int) -> Record:
    """Lease the wake to a worker; a new one, if nobody has been woken."""
    if not is_in_flight(record, now_ms):
        record = begin(record, tails, now_ms)
    assert record.wake is not None
    wake = replace(
        record.wake,
        holder=worker,
        lease_until_ms=now_ms + record.lease_ttl_ms,
        snapshot=ends_of(record, tails),
    )
    return replace(record, wake=wake)


def extend(record: Record, now_ms: int) -> Record:
    """Prolong the lease of the wake."""
    assert record.wake is not None
    # Whoever calls back has got the webhook, whatever came of its answer.
    wake = replace(record.wake, lease_until_ms=now_ms + record.lease_ttl_ms, attempt_at_ms=0)
    return replace(record, wake=wake, failures=0)


def acknowledge(record: Record, ends: Mapping[str, Position]) -> Record:
    """Move links forward to these places. A link of another origin stays where it is."""
    links = dict(record.links)
    for path, at in ends.items():
        present = links.get(path)
        if present is not None and at.origin == present.acked.origin and at > present.acked:
            links[path] = replace(present, acked=at)
    return replace(record, links=links)
