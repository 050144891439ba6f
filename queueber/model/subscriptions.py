"""Values of subscriptions: what is asked for, what is delivered, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

from queueber.model.topics import GroupSettings, MessageSlice, Position


@dataclass(frozen=True, slots=True)
class Subscribing:
    """What a subscriber asks for."""

    group: str = ""
    """Empty: no group, and nothing is acknowledged."""
    consumer: str = ""
    """Its name, for logs and for the description of the group."""
    position: Position = field(default_factory=Position)
    """Where a new group, or a subscription without one, begins."""
    partitions: Sequence[int] = ()
    """Empty: all."""
    credits: int = 0
    """The first grant."""
    heartbeat_ms: int = 0
    """0: none."""
    settings: GroupSettings = field(default_factory=GroupSettings)
    """Of the group, if it does not exist yet."""
    lease_ms: int = 0
    """Of a shared group; 0: as its settings say."""
    batch_messages_max: int = 0
    """Messages in one delivery; 0: as the server likes."""
    deliveries_max: int = 0
    """Deliveries that its consumer has not answered; 0: as the server likes."""
    seeks: bool = False
    """Whether a subscription of an ordered group begins at the position, wherever the group is. The
    cursor moves with acknowledgements alone; a new group has it at the earliest message."""


@dataclass(frozen=True, slots=True)
class Consuming:
    """What a consumer of one partition of a shared group asks for."""

    group: str
    partition: int = 0
    position: Position = field(default_factory=Position)
    """Where the group begins the partition, if it has not begun it."""
    settings: GroupSettings = field(default_factory=GroupSettings)
    """Of the group, if it does not exist yet."""
    messages_max: int = 1
    lease_ms: int = 0
    """0: as the settings of the group say."""


@dataclass(slots=True)
class Delivery:
    """Messages of one partition that a consumer gets."""

    slice: MessageSlice
    lease: bytes = b""
    """Of a shared group."""
    attempts: Sequence[int] = ()
    """Of a shared group; empty: the first of each message."""
    missed: int = 0
    """Messages that were deleted before they could be delivered."""


class Outcome(Enum):
    """What becomes of messages that a consumer of a shared group had."""

    ACKNOWLEDGED = "acknowledged"
    FAILED = "failed"
    RELEASED = "released"
    EXTENDED = "extended"
    """The whole lease goes on."""


@dataclass(frozen=True, slots=True)
class Settlement:
    """The outcome of messages of one lease, which are named by partition and offset."""

    lease: bytes
    partitions: Sequence[int]
    """A single one: that of all."""
    offsets: Sequence[int]
    outcome: Outcome = Outcome.ACKNOWLEDGED
    error: str = ""
    """Of a failure."""
    delay_ms: int | None = None
    """Of a failure; None: the backoff of the group. Of an extended lease: its new length."""
