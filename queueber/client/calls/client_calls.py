"""All calls of one client: those of each queue and topic, and those to the server itself."""

from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

from queueber.client.arguments.queue_settings import (
    SettingsArguments,
    to_changes,
    to_settings,
)
from queueber.client.arguments.topic_names import to_group_name, to_topic_name
from queueber.client.arguments.values import to_name
from queueber.client.calls.backups import BackupCalls
from queueber.client.calls.consumes import ConsumeCalls
from queueber.client.calls.measures import MeasureCalls
from queueber.client.calls.publishes import Publishes
from queueber.client.calls.queue_calls import QueueCalls
from queueber.client.calls.schedules import ScheduleCalls
from queueber.client.calls.topics import TopicCalls, TopicList
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import GroupRef, Link, QueueRef, TopicRef
from queueber.model import CallerInfo, QueueSettings, ServerInfo, SessionTokens, Stats
from queueber.wire.callers import read_caller, read_tokens
from queueber.wire.queues import read_server_info, read_settings, read_stats, write_settings

_RECENT_TOPICS_MAX = 64


class ClientCalls:
    """The calls to the server itself, and those of each queue."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._publishes = Publishes(connection)
        self._queues: dict[QueueRef | GroupRef, QueueCalls] = {}
        # There may be a million topics: one that nobody refers to is forgotten.
        self._topics: WeakValueDictionary[TopicRef, TopicCalls] = WeakValueDictionary()
        self._recent_topics: dict[TopicRef, TopicCalls] = {}
        """Some of them, so that who publishes one message after the other does not make its topic
        anew for each."""
        self.topic_list = TopicList(connection)
        self.consumes = ConsumeCalls(connection)
        self.backups = BackupCalls(connection)
        self.measures = MeasureCalls(connection)
        self.schedules = ScheduleCalls(connection)
        connection.senders.append(self)
        self._lock = Lock()

    def queue(self, name: str, *, must_exist: bool) -> QueueCalls:
        """The same object for all who ask for the queue, so that their calls are batched."""
        ref = QueueRef(to_name(name), bool(must_exist))
        return self._queue_calls(name, ref)

    def topic(self, name: str, *, must_exist: bool) -> TopicCalls:
        """The same object for all who ask for the topic while somebody has it."""
        ref = TopicRef(to_topic_name(name), bool(must_exist))
        recent = self._recent_topics.get(ref)
        if recent is not None:
            return recent
        with self._lock:
            found = self._topics.get(ref)
            if found is None:
                found = self._topics[ref] = TopicCalls(self.connection, ref, self._publishes)
            if len(self._recent_topics) >= _RECENT_TOPICS_MAX:
                self._recent_topics.clear()
            self._recent_topics[ref] = found
            return found

    def group(self, topic: TopicRef, name: str) -> QueueCalls:
        """A shared group, as a queue."""
        ref = GroupRef(topic, to_group_name(name))
        return self._queue_calls(f"{topic.name}/{name}", ref)

    def _queue_calls(self, name: str, ref: QueueRef | GroupRef) -> QueueCalls:
        with self._lock:
            if ref not in self._queues:
                self._queues[ref] = QueueCalls(self.connection, name, ref)
            return self._queues[ref]

    # --- when the client closes, see `Sender` -----------------------------------------------------

    def close(self) -> None:
        self._publishes.batcher.close()

    @property
    def is_releasing(self) -> bool:
        return False

    def end(self) -> None:
        pass

    # --- calls to the server ----------------------------------------------------------------------

    def describe(self) -> "Future[ServerInfo]":
        return self.connection.ask(
            lambda link: link.service.describe(), lambda response: read_server_info(response.server)
        )

    def who_am_i(self) -> "Future[CallerInfo]":
        return self.connection.ask(
            lambda link: link.service.whoAmI(), lambda response: read_caller(response.caller)
        )

    def issue_tokens(self) -> "Future[SessionTokens]":
        return self.connection.ask(
            lambda link: link.service.issueTokens(), lambda response: read_tokens(response.tokens)
        )

    def create(
        self, name: str, settings: QueueSettings | None, changes: SettingsArguments
    ) -> "Future[bool]":
        made = to_settings(QueueSettings() if settings is None else settings, changes)
        send = partial(_send_settings, "createQueue", to_name(name), made)
        return self.connection.ask(
            send, lambda response: bool(response.created), is_repeatable=False
        )

    def configure(
        self, name: str, settings: QueueSettings | None, changes: SettingsArguments
    ) -> "Future[None]":
        # Wrong settings are refused before any call.
        to_changes(changes)
        whole = None if settings is None else to_settings(settings, changes)
        to_name(name)

        async def configure() -> None:
            made = whole
            if made is None:
                # With `must_exist`, because reading the settings must not create the queue.
                response = await self.connection.call(
                    lambda link: link.service.queue(name, True).queue.stats(), is_repeatable=True
                )
                made = to_settings(read_settings(response.stats.settings), changes)
            send = partial(_send_settings, "configureQueue", name, made)
            await self.connection.call(send, is_repeatable=True)

        return self.connection.submit(configure)

    def delete(self, name: str) -> "Future[bool]":
        to_name(name)

        def send(link: Link) -> Any:
            link.forget_queue(name)
            return link.service.deleteQueue(name)

        return self.connection.ask(
            send, lambda response: bool(response.deleted), is_repeatable=False
        )

    def list_queues(self) -> "Future[list[Stats]]":
        return self.connection.submit(self._list_queues)

    async def _list_queues(self) -> list[Stats]:
        queues: list[Stats] = []

        def send(link: Link) -> Any:
            return link.service.listQueues(queues[-1].name if queues else "", 0)

        more = True
        while more:
            response = await self.connection.call(send, is_repeatable=True)
            queues += [read_stats(each) for each in response.queues]
            more = response.more
        return queues


def _send_settings(method: str, name: str, settings: QueueSettings, link: Link) -> Any:
    request = getattr(link.service, method + "_request")()
    request.name = name
    write_settings(request.init("settings"), settings)
    return request.send()
