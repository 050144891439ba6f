"""Calls to the server itself: describe it; create, configure, delete and list queues."""

from concurrent.futures import Future
from functools import partial
from typing import Any

from queueber.client.arguments.queue_settings import SettingsArguments, to_settings
from queueber.client.arguments.values import to_name
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import Link
from queueber.model import QueueSettings, ServerInfo, Stats
from queueber.wire.queues import (
    read_server_info,
    read_settings,
    read_stats,
    write_settings,
)


class ServerCalls:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def describe(self) -> "Future[ServerInfo]":
        return self._connection.submit(self._describe)

    async def _describe(self) -> ServerInfo:
        response = await self._connection.call(
            lambda link: link.service.describe(), is_repeatable=True
        )
        return read_server_info(response.server)

    def create(
        self, name: str, settings: QueueSettings | None, changes: SettingsArguments
    ) -> "Future[bool]":
        made = to_settings(QueueSettings() if settings is None else settings, changes)
        return self._connection.submit(partial(self._create, to_name(name), made))

    async def _create(self, name: str, settings: QueueSettings) -> bool:
        def send(link: Link) -> Any:
            request = link.service.createQueue_request()
            request.name = name
            write_settings(request.init("settings"), settings)
            return request.send()

        return bool((await self._connection.call(send, is_repeatable=False)).created)

    def configure(
        self, name: str, settings: QueueSettings | None, changes: SettingsArguments
    ) -> "Future[None]":
        # Wrong settings are refused before any call.
        whole = to_settings(QueueSettings() if settings is None else settings, changes)
        if settings is not None:
            return self._connection.submit(partial(self._configure, to_name(name), whole))
        return self._connection.submit(partial(self._change, to_name(name), changes))

    async def _change(self, name: str, changes: SettingsArguments) -> None:
        # With `must_exist`, because reading the settings must not create the queue.
        response = await self._connection.call(
            lambda link: link.service.queue(name, True).queue.stats(), is_repeatable=True
        )
        await self._configure(name, to_settings(read_settings(response.stats.settings), changes))

    async def _configure(self, name: str, settings: QueueSettings) -> None:
        def send(link: Link) -> Any:
            request = link.service.configureQueue_request()
            request.name = name
            write_settings(request.init("settings"), settings)
            return request.send()

        await self._connection.call(send, is_repeatable=True)

    def delete(self, name: str) -> "Future[bool]":
        return self._connection.submit(partial(self._delete, to_name(name)))

    async def _delete(self, name: str) -> bool:
        def send(link: Link) -> Any:
            link.forget_queue(name)
            return link.service.deleteQueue(name)

        response = await self._connection.call(send, is_repeatable=False)
        return bool(response.deleted)

    def list_queues(self) -> "Future[list[Stats]]":
        return self._connection.submit(self._list_queues)

    async def _list_queues(self) -> list[Stats]:
        queues: list[Stats] = []
        more = True
        while more:
            send = partial(_send_list, queues[-1].name if queues else "")
            response = await self._connection.call(send, is_repeatable=True)
            queues += [read_stats(each) for each in response.queues]
            more = response.more
        return queues


def _send_list(after: str, link: Link) -> Any:
    return link.service.listQueues(after, 0)
