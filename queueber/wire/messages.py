"""Codecs of messages: what is published, where it went, and what a read or a delivery found.

Messages of a topic travel as they are stored, in pieces of messages that were published together.
Neither side makes an object of each.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from struct import Struct
from typing import Any

from queueber.errors import InvalidArgument
from queueber.limits import PUBLISH_MESSAGES_MAX, PUBLISH_TOPICS_MAX
from queueber.model import (
    Column,
    IdRuns,
    MessageSlice,
    NewMessages,
    PackedContents,
    PackedMessages,
    Publication,
    Published,
)
from queueber.schema import wire
from queueber.wire.items import read_producer, write_producer
from queueber.wire.lists import read_attribute_columns, read_list, write_attribute_columns
from queueber.wire.packed import read_packed, write_packed

_PUBLICATION = wire.Publication.schema.fields
_PACKED, _KEYS, _ATTRIBUTES = (_PUBLICATION[name] for name in ("packed", "keys", "attributes"))
_TOPIC, _PAYLOADS, _CLOSES = (_PUBLICATION[name] for name in ("topic", "payloads", "closes"))
_INTO, _EXPECTED = _PUBLICATION["partition"], _PUBLICATION["expectedOffset"]
_DEDUP_IDS, _PRODUCER = _PUBLICATION["dedupIds"], _PUBLICATION["producer"]
_CONTENT_TYPE, _TEXT_SEQUENCE = _PUBLICATION["contentType"], _PUBLICATION["textSequence"]
_NUMBER_DECIDES, _SCHEMA_VERSION = _PUBLICATION["numberDecides"], _PUBLICATION["schemaVersion"]
_TOPIC_NUMBER, _MUST_EXIST = _PUBLICATION["topicNumber"], _PUBLICATION["mustExist"]
_ONE_PARTITION = _PUBLICATION["onePartition"]
_PUBLISHED = wire.Published.schema.fields
_DUPLICATES, _AT_MS, _COUNT = (_PUBLISHED[name] for name in ("duplicates", "atMs", "count"))
_ID_RUNS, _PUBLISHED_END = _PUBLISHED["idRuns"], _PUBLISHED["endOffset"]
_ORIGIN = _PUBLISHED["origin"]
_SLICE = wire.MessageSlice.schema.fields
_PARTITION, _MISSED, _IS_CLOSED = (_SLICE[name] for name in ("partition", "missed", "isClosed"))
_NEXT_OFFSET, _END_OFFSET = _SLICE["nextOffset"], _SLICE["endOffset"]
_FIRST_KEPT = _SLICE["firstKept"]
_COLUMNS = wire.MessageColumns.schema.fields
_PIECE_KEYS, _PIECE_ATTRIBUTES = _COLUMNS["keys"], _COLUMNS["attributes"]
_PIECE = Struct(">IQQ16sQ")
_END_BYTES = 4
_NONE = -1
"""In place of a partition or an offset."""

# --- publish --------------------------------------------------------------------------------------


def read_publications(publications: Any) -> list[Publication]:
    """Those of one call; the service checks how many messages they have together."""
    return [
        read_publication(each)
        for each in read_list("publications", publications, PUBLISH_TOPICS_MAX)
    ]


def read_publication(source: Any) -> Publication:
    """What one call publishes to a topic. The service checks the lengths of the columns."""
    has, get = source._has_by_field, source._get_by_field  # a name takes four times as long
    count_max = PUBLISH_MESSAGES_MAX
    if not has(_PACKED):
        payloads: Sequence[bytes] = read_list("payloads", source.payloads, count_max)
    elif has(_PAYLOADS) and len(source.payloads):
        raise InvalidArgument("packed: payloads were given, too; give the one or the other")
    else:
        payloads = read_packed("packed", get(_PACKED), count_max)
    has_producer = has(_PRODUCER)
    return Publication(
        get(_TOPIC),
        NewMessages(
            payloads,
            read_list("keys", source.keys, count_max) if has(_KEYS) else (),
            read_attribute_columns(source.attributes, count_max) if has(_ATTRIBUTES) else (),
            read_list("dedupIds", source.dedupIds, count_max) if has(_DEDUP_IDS) else (),
        ),
        read_optional("partition", get(_INTO)),
        read_producer(source.producer) if has_producer else None,
        read_optional("expectedOffset", get(_EXPECTED)),
        get(_CLOSES),
        not get(_MUST_EXIST),
        get(_CONTENT_TYPE) if has(_CONTENT_TYPE) else "",
        get(_TEXT_SEQUENCE) if has(_TEXT_SEQUENCE) else "",
        has_producer and get(_NUMBER_DECIDES),
        get(_SCHEMA_VERSION),
        get(_TOPIC_NUMBER),
        get(_ONE_PARTITION),
    )


def read_optional(field: str, value: int) -> int | None:
    """A number of which -1 means none."""
    if value < _NONE:
        raise InvalidArgument(f"{field}: {value} is negative; give -1 for none, or 0 and above")
    return None if value == _NONE else value


def write_publication(target: Any, publication: Publication) -> None:
    messages = publication.messages
    target.topic = publication.topic
    write_packed(target.init("packed"), messages.payloads)
    if messages.keys:
        target.keys = list(messages.keys)
    if messages.attributes:
        write_attribute_columns(target.init("attributes"), messages.attributes)
    if messages.dedup_ids:
        target.dedupIds = list(messages.dedup_ids)
    if publication.partition is not None:
        target.partition = publication.partition
    if publication.producer is not None:
        write_producer(target.init("producer"), publication.producer)
    if publication.expected_offset is not None:
        target.expectedOffset = publication.expected_offset
    if publication.closes:
        target.closes = True
    if not publication.may_create:
        target.mustExist = True
    _write_conditions(target, publication)


def _write_conditions(target: Any, publication: Publication) -> None:
    """What the publication demands of the topic."""
    if publication.content_type:
        target.contentType = publication.content_type
    if publication.text_sequence:
        target.textSequence = publication.text_sequence
    if publication.number_decides:
        target.numberDecides = True
    if publication.schema_version:
        target.schemaVersion = publication.schema_version
    if publication.topic_number:
        target.topicNumber = publication.topic_number
    if publication.one_partition:
        target.onePartition = True


def write_published(target: Any, published: Published) -> None:
    put = target._set_by_field  # a name takes four times as long
    put(_AT_MS, published.at_ms)
    put(_COUNT, len(published.offsets))
    put(_PUBLISHED_END, published.end_offset)
    put(_ORIGIN, published.origin)
    target.partitions = _one_if_same(published.partitions)
    target.offsets = _one_if_consecutive(published.offsets)
    target.sequences = _one_if_consecutive(published.sequences)
    ids = published.ids
    runs = ids if isinstance(ids, IdRuns) else IdRuns([(each, 1) for each in ids])  # type: ignore[misc]
    put(_ID_RUNS, runs.packed)
    if published.duplicates:
        target.duplicates = list(published.duplicates)
    if published.is_repeat:
        target.isRepeat = True
    if published.last_number:
        target.lastNumber = published.last_number
    if published.is_closed:
        target.isClosed = True


def read_published(source: Any) -> Published:
    count = source.count
    partitions = list(source.partitions)
    return Published(
        source.atMs,
        partitions * count if len(partitions) == 1 else partitions,
        _consecutive(source.offsets, count),
        IdRuns.read(source.idRuns),
        _consecutive(source.sequences, count),
        list(source.duplicates) if source._has_by_field(_DUPLICATES) else (),
        source.isRepeat,
        source.endOffset,
        source.lastNumber,
        source.isClosed,
        source.origin,
    )


def _one_if_same(values: Sequence[int]) -> list[int]:
    return list(values[:1]) if len(set(values)) == 1 else list(values)


def _one_if_consecutive(values: Sequence[int]) -> list[int]:
    listed = list(values)
    if listed and listed == list(range(listed[0], listed[0] + len(listed))):
        return listed[:1]
    return listed


def _consecutive(values: Any, count: int) -> Sequence[int]:
    listed = list(values)
    return range(listed[0], listed[0] + count) if len(listed) == 1 else listed


# --- read -----------------------------------------------------------------------------------------


def write_slice(target: Any, found: MessageSlice, without: frozenset[Column] = frozenset()) -> None:
    put = target._set_by_field  # a name takes four times as long
    put(_NEXT_OFFSET, found.next_offset)
    put(_END_OFFSET, found.end_offset)
    if found.partition:
        put(_PARTITION, found.partition)
    if found.first_kept:
        put(_FIRST_KEPT, found.first_kept)
    if found.missed:
        put(_MISSED, found.missed)
    if found.is_closed:
        put(_IS_CLOSED, True)
    if found.number:
        target.contentType = found.content_type
        target.origin = found.origin
        target.number = found.number
    if found.packed:
        write_columns(target.init("messages"), found.packed, without)


def read_slice(source: Any) -> MessageSlice:
    return MessageSlice(
        source.partition,
        read_columns_of(source.messages),
        source.nextOffset,
        source.firstKept,
        source.endOffset,
        source.missed,
        source.isClosed,
        source.contentType,
        source.origin,
        source.number,
    )


def write_columns(
    target: Any, packed: Sequence[PackedMessages], without: frozenset[Column] = frozenset()
) -> None:
    target.pieces = b"".join(
        [_PIECE.pack(p.count, p.offset, p.at_ms, p.id, p.sequence) for p in packed]
    )
    if Column.CONTENTS in without:
        pass
    elif len(packed) == 1:  # as it is stored
        only = target.init("payloads")
        only.ends, only.values = packed[0].ends, packed[0].payloads
    else:
        payloads = PackedContents.join(
            [PackedContents(p.payloads, memoryview(p.ends).cast("I")) for p in packed]
        )
        write_packed(target.init("payloads"), payloads)
    if Column.KEYS not in without and any(any(p.keys) for p in packed):
        write_packed(target.init("keys"), _joined((p.keys, p.count) for p in packed))
    if Column.ATTRIBUTES not in without and any(any(p.attributes) for p in packed):
        write_packed(target.init("attributes"), _joined((p.attributes, p.count) for p in packed))


def _joined(columns: Iterable[tuple[Sequence[bytes], int]]) -> list[bytes]:
    return list(chain.from_iterable(column or [b""] * count for column, count in columns))


def read_columns_of(source: Any) -> list[PackedMessages]:
    """The pieces. Without payloads every message has an empty one."""
    heads = list(_PIECE.iter_unpack(source.pieces))
    total = sum([head[0] for head in heads])
    if not total:
        return []
    payloads = _column(source.payloads, total) or PackedContents.pack([b""] * total)
    has = source._has_by_field
    keys = _column(source.keys, total) if has(_PIECE_KEYS) else None
    attributes = _column(source.attributes, total) if has(_PIECE_ATTRIBUTES) else None
    pieces = []
    at = 0
    for count, offset, at_ms, first_id, sequence in heads:
        end = at + count
        own = payloads[at:end]
        pieces.append(
            PackedMessages(
                offset,
                count,
                at_ms,
                first_id,
                sequence,
                own.ends_from_zero,
                bytes(own.values),
                list(keys[at:end]) if keys is not None else (),
                list(attributes[at:end]) if attributes is not None else (),
            )
        )
        at = end
    return pieces


def _column(source: Any, total: int) -> PackedContents | None:
    """A column of an answer; None if it was left out."""
    ends = source.ends
    return PackedContents.read(source.values, ends) if len(ends) == total * _END_BYTES else None
