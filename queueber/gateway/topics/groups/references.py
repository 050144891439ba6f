"""Names of messages in calls about leases: partition and offset, where a queue has ids."""

from struct import Struct
from typing import Annotated

import msgspec
from msgspec import Meta

from queueber.gateway.topics import fields

_ID = Struct(">6xHQ")


class Reference(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What names a message of a topic."""

    partition: fields.Partition
    offset: fields.Offset


References = Annotated[list[Reference], Meta(min_length=1, max_length=10_000)]


def id_of(place: Reference) -> bytes:
    return _ID.pack(place.partition, place.offset)


def ids_of(places: list[Reference]) -> list[bytes]:
    return [id_of(each) for each in places]


def reference_of(item_id: bytes) -> Reference:
    return Reference(*_ID.unpack(item_id))
