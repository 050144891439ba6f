"""Calls about the groups of a topic."""

from collections.abc import Mapping
from concurrent.futures import Future
from functools import partial
from operator import methodcaller
from typing import Any

from queueber.client.arguments import values
from queueber.client.arguments.new_messages import to_partition
from queueber.client.arguments.topic_names import to_group_name
from queueber.client.arguments.topic_settings import to_group_settings
from queueber.client.arguments.values import Seconds
from queueber.client.transport.remote_queue import RemoteQueue
from queueber.limits import DELAY_MS_MAX
from queueber.model import GroupInfo, GroupSettings, Position
from queueber.wire.topics import (
    ALL_PARTITIONS,
    read_group_info,
    write_group_settings,
    write_position,
)


class GroupCalls:
    def __init__(self, topic: RemoteQueue) -> None:
        self._topic = topic

    def create(self, name: str, given: Mapping[str, Any], at: Position) -> "Future[bool]":
        send = partial(_send_create, to_group_name(name), to_group_settings(given), at)
        # Not safe to repeat: the second time the answer would be False.
        return self._topic.ask(send, lambda response: bool(response.created), is_repeatable=False)

    def all(self) -> "Future[list[GroupInfo]]":
        return self._topic.ask(
            methodcaller("listGroups"),
            lambda response: [read_group_info(each) for each in response.groups],
        )

    def describe(self, name: str) -> "Future[GroupInfo]":
        return self._topic.ask(
            methodcaller("describeGroup", to_group_name(name)),
            lambda response: read_group_info(response.group),
        )

    def delete(self, name: str) -> "Future[bool]":
        return self._topic.ask(
            methodcaller("deleteGroup", to_group_name(name)),
            lambda response: bool(response.deleted),
            is_repeatable=False,
        )

    def reset(self, name: str, partition: int | None, to: Position) -> "Future[None]":
        send = partial(_send_reset, to_group_name(name), to_partitions(partition), to)
        return self._topic.ask(send, lambda _: None)

    def pause(self, name: str, seconds: Seconds | None) -> "Future[None]":
        for_ms = 0 if seconds is None else values.to_some_ms("seconds", seconds, DELAY_MS_MAX)
        return self._topic.ask(
            methodcaller("pauseGroup", to_group_name(name), for_ms), lambda _: None
        )

    def resume(self, name: str) -> "Future[None]":
        return self._topic.ask(methodcaller("resumeGroup", to_group_name(name)), lambda _: None)

    def ack(self, name: str, offset: int, partition: int) -> "Future[int]":
        """Safe to repeat: the cursor never goes back."""
        send = methodcaller(
            "ack",
            to_group_name(name),
            to_partition(partition),
            values.to_number("offset", offset, what="an offset"),
        )
        return self._topic.ask(send, lambda response: int(response.offset))


def to_partitions(partition: int | None) -> int:
    """One partition, or all of them."""
    return ALL_PARTITIONS if partition is None else to_partition(partition)


def _send_create(name: str, settings: GroupSettings, at: Position, topic: Any) -> Any:
    request = topic.createGroup_request()
    request.name = name
    write_group_settings(request.init("settings"), settings)
    write_position(request.init("at"), at)
    return request.send()


def _send_reset(name: str, partition: int, to: Position, topic: Any) -> Any:
    request = topic.resetGroup_request()
    request.name = name
    request.partition = partition
    write_position(request.init("to"), to)
    return request.send()
