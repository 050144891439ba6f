"""What attacks say to the service: requests of Sluice, and the topics that they are about."""

from queueber.gateway.grpc import sluice_pb2 as wire

BIG, EMPTY, SMALL = "hostile-big", "hostile-empty", "hostile-small"
"""Topics with some messages of megabytes, without messages, and with a hundred small ones."""
PUBLISH = wire.PublishRequest(topic="hostile", payload=b"m").SerializeToString()
WRONG = wire.PublishRequest(topic="no/name").SerializeToString()
CREDITS = wire.SubscribeUpstream(credit=wire.CreditGrant(credits=2**32 - 1)).SerializeToString()
_UNKNOWN_FIELD = b"\xfa\x7f"


def init(topic: str, group: str) -> bytes:
    first = wire.SubscriptionInit(topic=topic, consumer_group=group, initial_position="EARLIEST")
    return wire.SubscribeUpstream(init=first).SerializeToString()


def ballast(field: bytes, size: int) -> bytes:
    """A field of messages with so many bytes."""
    return field + _varint(size) + bytes(size)


def init_with_ballast(topic: str, group: str, size: int) -> bytes:
    """Two inits count as one with the fields of both, also those that nobody knows."""
    unknown = ballast(_UNKNOWN_FIELD, size)
    return init(topic, group) + b"\x0a" + _varint(len(unknown)) + unknown


def nested(depth: int) -> bytes:
    """Groups in groups: fields that a reader has to skip one by one, without an end."""
    return b"\x7b" * depth


def _varint(number: int) -> bytes:
    found = b""
    while number >= 128:
        found += bytes([number % 128 + 128])
        number //= 128
    return found + bytes([number])


def odd(at: int) -> int:
    """The number of a client's stream."""
    return 2 * at + 1
