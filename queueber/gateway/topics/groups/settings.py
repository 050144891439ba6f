"""The settings of groups in JSON: those of a shared group are those of a queue's leases."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from queueber.client import Backoff
from queueber.gateway.queues.fields import QUEUE_NAME_PATTERN, DelayMs, LeaseMs
from queueber.gateway.topics import fields
from queueber.limits import ATTEMPTS_CEILING, BACKOFF_STEPS_MAX, SECOND_MS
from queueber.model import GroupKind, GroupSettings, QueueSettings

_DEFAULTS = QueueSettings()
_Attempts = Annotated[int, Meta(ge=0, le=ATTEMPTS_CEILING)]
_Steps = Annotated[list[DelayMs], Meta(max_length=BACKOFF_STEPS_MAX)]
_Factor = Annotated[float, Meta(ge=1, le=100)]
_Jitter = Annotated[float, Meta(ge=0, le=1)]


class OrderedGroup(
    msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag=GroupKind.ORDERED.value
):
    """One consumer at a time gets the messages of a partition in order, and acknowledges all up to
    an offset."""


class QueueGroup(
    msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag=GroupKind.QUEUE.value
):
    """The server adds the messages to a queue, each once."""

    queue: Annotated[str, Meta(pattern=QUEUE_NAME_PATTERN)]


class SharedGroup(
    msgspec.Struct, forbid_unknown_fields=True, tag_field="kind", tag=GroupKind.SHARED.value
):
    """Many consumers lease messages, and acknowledge each. `backoff_ms` has the delays after the
    first failure, the second, and so on; without it they grow from `backoff_base_ms`."""

    in_flight_max: fields.Count = 0
    lease_ms: LeaseMs = _DEFAULTS.lease_ms
    attempts_max: _Attempts = _DEFAULTS.attempts_max
    isolation: bool = True
    backoff_ms: _Steps = []
    backoff_base_ms: DelayMs = _DEFAULTS.backoff_base_ms
    backoff_factor: _Factor = _DEFAULTS.backoff_factor
    backoff_cap_ms: DelayMs = _DEFAULTS.backoff_cap_ms
    backoff_jitter: _Jitter = _DEFAULTS.backoff_jitter


def to_group_arguments(settings: OrderedGroup | SharedGroup | QueueGroup) -> dict[str, Any]:
    """The settings as the client takes them."""
    match settings:
        case OrderedGroup():
            return {"kind": GroupKind.ORDERED}
        case QueueGroup():
            return {"kind": GroupKind.QUEUE, "queue": settings.queue}
    backoff: Backoff | list[float] = [each / SECOND_MS for each in settings.backoff_ms]
    if not backoff:
        backoff = Backoff(
            base=settings.backoff_base_ms / SECOND_MS,
            factor=settings.backoff_factor,
            cap=settings.backoff_cap_ms / SECOND_MS,
            jitter=settings.backoff_jitter,
        )
    return {
        "kind": GroupKind.SHARED,
        "in_flight_max": settings.in_flight_max,
        "lease": settings.lease_ms / SECOND_MS,
        "attempts_max": settings.attempts_max,
        "isolation": settings.isolation,
        "backoff": backoff,
    }


def shown_group_settings(settings: GroupSettings) -> OrderedGroup | SharedGroup | QueueGroup:
    match settings.kind:
        case GroupKind.ORDERED:
            return OrderedGroup()
        case GroupKind.QUEUE:
            return QueueGroup(settings.queue)
    leases = settings.leases
    return SharedGroup(
        settings.in_flight_max,
        leases.lease_ms,
        leases.attempts_max,
        leases.isolation,
        list(leases.backoff_ms),
        leases.backoff_base_ms,
        leases.backoff_factor,
        leases.backoff_cap_ms,
        leases.backoff_jitter,
    )
