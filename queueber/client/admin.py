"""Calls about queues rather than items: create, configure, delete, list."""

from concurrent.futures import Future
from functools import partial
from typing import Any, Unpack

from queueber.client.arguments import to_name
from queueber.client.core import Core
from queueber.client.link import Link
from queueber.client.settings import SettingsArguments, to_settings
from queueber.model import QueueSettings, ServerInfo, Stats
from queueber.wire.queues import (
    read_server_info,
    read_settings,
    read_stats,
    write_settings,
)


class AdminCalls:
    def __init__(self, core: Core) -> None:
        self._core = core

    def describe(self) -> "Future[ServerInfo]":
        return self._core.submit(self._describe)

    async def _describe(self) -> ServerInfo:
        response = await self._core.call(lambda link: link.service.describe(), is_repeatable=True)
        return read_server_info(response.server)

    def create(self, name: str, **settings: Unpack[SettingsArguments]) -> "Future[bool]":
        made = to_settings(QueueSettings(), settings)
        return self._core.submit(partial(self._create, to_name(name), made))

    async def _create(self, name: str, settings: QueueSettings) -> bool:
        def send(link: Link) -> Any:
            request = link.service.createQueue_request()
            request.name = name
            write_settings(request.init("settings"), settings)
            return request.send()

        return bool((await self._core.call(send, is_repeatable=False)).created)

    def configure(self, name: str, **settings: Unpack[SettingsArguments]) -> "Future[None]":
        to_settings(QueueSettings(), settings)  # what is wrong with them is told before any call
        return self._core.submit(partial(self._configure, to_name(name), settings))

    async def _configure(self, name: str, given: SettingsArguments) -> None:
        # Asked for as a queue that must be there: to ask for its statistics alone would create it.
        response = await self._core.call(
            lambda link: link.service.queue(name, True).queue.stats(), is_repeatable=True
        )
        settings = to_settings(read_settings(response.stats.settings), given)

        def send(link: Link) -> Any:
            request = link.service.configureQueue_request()
            request.name = name
            write_settings(request.init("settings"), settings)
            return request.send()

        await self._core.call(send, is_repeatable=True)

    def delete(self, name: str) -> "Future[bool]":
        return self._core.submit(partial(self._delete, to_name(name)))

    async def _delete(self, name: str) -> bool:
        def send(link: Link) -> Any:
            link.forget_queue(name)
            return link.service.deleteQueue(name)

        response = await self._core.call(send, is_repeatable=False)
        return bool(response.deleted)

    def list_queues(self) -> "Future[list[Stats]]":
        return self._core.submit(self._list_queues)

    async def _list_queues(self) -> list[Stats]:
        queues: list[Stats] = []
        more = True
        while more:
            send = partial(_send_list, queues[-1].name if queues else "")
            response = await self._core.call(send, is_repeatable=True)
            queues += [read_stats(each) for each in response.queues]
            more = response.more
        return queues


def _send_list(after: str, link: Link) -> Any:
    return link.service.listQueues(after, 0)
