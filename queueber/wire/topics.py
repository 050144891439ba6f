"""Codecs of topics and groups: settings, positions and descriptions, to plain values and back."""

from typing import Any

from queueber.errors import InvalidArgument
from queueber.model import (
    GroupInfo,
    GroupKind,
    GroupSettings,
    PartitionInfo,
    Position,
    Start,
    TopicConfig,
    TopicInfo,
    TopicSettings,
)
from queueber.schema import wire
from queueber.wire.lists import Codec
from queueber.wire.queues import read_settings, write_settings
from queueber.wire.routes import read_source, write_source

_SETTINGS = Codec(TopicSettings)
_PARTITION = Codec(PartitionInfo)
_TOPIC = Codec(TopicInfo, without=("config", "partitions", "groups", "sources"))
_GROUP = Codec(GroupInfo, without=("settings", "cursors", "consumers"))

ALL_PARTITIONS = -1

# --- topics ---------------------------------------------------------------------------------------


def read_config(source: Any) -> TopicConfig:
    return TopicConfig(
        _SETTINGS.read(source.settings), source.partitions, source.contentType, source.alias
    )


def write_config(target: Any, config: TopicConfig) -> None:
    _SETTINGS.write(target.init("settings"), config.settings)
    target.partitions = config.partitions
    target.contentType = config.content_type
    target.alias = config.alias


def write_topic_info(target: Any, info: TopicInfo) -> None:
    _TOPIC.write(target, info)
    write_config(target.init("config"), info.config)
    listed = target.init("partitions", len(info.partitions))
    for at, partition in enumerate(info.partitions):
        _PARTITION.write(listed[at], partition)
    target.groups = list(info.groups)
    if info.sources:
        sources = target.init("sources", len(info.sources))
        for at, source in enumerate(info.sources):
            write_source(sources[at], source)


def read_topic_info(source: Any) -> TopicInfo:
    return _TOPIC.read(
        source,
        config=read_config(source.config),
        partitions=[_PARTITION.read(each) for each in source.partitions],
        groups=list(source.groups),
        sources=tuple(read_source(each) for each in source.sources),
    )


def read_partition(partition: int) -> int | None:
    """None: all partitions."""
    if partition < ALL_PARTITIONS:
        raise InvalidArgument(f"partition: {partition} is negative; give -1 for all partitions")
    return None if partition == ALL_PARTITIONS else partition


# --- positions ------------------------------------------------------------------------------------

_START, _VALUE, _MOVES = (wire.Position.schema.fields[name] for name in ("start", "value", "moves"))
_STARTS = tuple(Start)
"""In the order of their numbers in the schema, which has the same words for them."""


def read_position(source: Any) -> Position:
    get = source._get_by_field  # each read has a position, and a name takes four times as long
    number = get(_START).raw
    if number >= len(_STARTS):
        raise InvalidArgument(f"start: {number} is no position; the highest is {len(_STARTS) - 1}")
    return Position(_STARTS[number], get(_VALUE), get(_MOVES))


def write_position(target: Any, position: Position) -> None:
    target.start = position.start.value
    target.value = position.value
    target.moves = position.moves


# --- groups ---------------------------------------------------------------------------------------

_KINDS = tuple(GroupKind)


def read_group_settings(source: Any) -> GroupSettings:
    number = source.kind.raw
    if number >= len(_KINDS):
        raise InvalidArgument(f"kind: {number} is no kind; the highest is {len(_KINDS) - 1}")
    return GroupSettings(
        _KINDS[number], source.queue, read_settings(source.leases), source.inFlightMax
    )


def write_group_settings(target: Any, settings: GroupSettings) -> None:
    target.kind = settings.kind.value
    target.queue = settings.queue
    write_settings(target.init("leases"), settings.leases)
    target.inFlightMax = settings.in_flight_max


def write_group_info(target: Any, info: GroupInfo) -> None:
    _GROUP.write(target, info)
    write_group_settings(target.init("settings"), info.settings)
    target.cursors = list(info.cursors)
    target.consumers = list(info.consumers)


def read_group_info(source: Any) -> GroupInfo:
    return _GROUP.read(
        source,
        settings=read_group_settings(source.settings),
        cursors=list(source.cursors),
        consumers=list(source.consumers),
    )
