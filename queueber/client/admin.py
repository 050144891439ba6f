"""Calls about queues rather than items: create, configure, delete, list."""

from concurrent.futures import Future
from functools import partial
from typing import Any

from queueber.client.arguments import to_name, to_settings
from queueber.client.core import Core
from queueber.client.link import Link
from queueber.model import QueueSettings, ServerInfo, Stats
from queueber.schema.codec import read_server_info, read_stats


class AdminCalls:
    def __init__(self, core: Core) -> None:
        self._core = core

    def describe(self) -> "Future[ServerInfo]":
        return self._core.submit(self._describe)

    async def _describe(self) -> ServerInfo:
        response = await self._core.call(lambda link: link.service.describe(), is_repeatable=True)
        return read_server_info(response.server)

    def create(self, name: str, **limits: int) -> "Future[bool]":
        return self._core.submit(partial(self._create, to_name(name), to_settings(**limits)))

    async def _create(self, name: str, settings: QueueSettings) -> bool:
        response = await self._core.call(
            lambda link: link.service.createQueue(name, _wire(settings)),
            is_repeatable=False,
        )
        return bool(response.created)

    def configure(self, name: str, **limits: int) -> "Future[None]":
        return self._core.submit(partial(self._configure, to_name(name), to_settings(**limits)))

    async def _configure(self, name: str, settings: QueueSettings) -> None:
        await self._core.call(
            lambda link: link.service.configureQueue(name, _wire(settings)),
            is_repeatable=True,
        )

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


def _wire(settings: QueueSettings) -> dict[str, int]:
    return {
        "itemsMax": settings.items_max,
        "bytesMax": settings.bytes_max,
        "itemBytesMax": settings.item_bytes_max,
    }
