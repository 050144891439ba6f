# Generated from async_client.py by scripts/generate_blocking.py; edit that file instead.
"""A client: one connection to a server, shared by all queues of a program."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Self, Unpack

from queueber.client.api.backup import Backup
from queueber.client.api.queue import Queue
from queueber.client.api.schedules import Schedules
from queueber.client.api.together import Together
from queueber.client.api.topic import Topic
from queueber.client.arguments.new_messages import AnyMessages
from queueber.client.arguments.queue_settings import SettingsArguments
from queueber.client.arguments.topic_settings import TopicArguments
from queueber.client.arguments.values import Seconds, to_ms, to_text
from queueber.client.calls.client_calls import ClientCalls
from queueber.client.calls.publishes import publish_many
from queueber.client.transport.futures import wait_for
from queueber.client.transport.identity import Token, to_identity
from queueber.client.transport.link import Target
from queueber.client.transport.loops import close_connection, open_connection
from queueber.errors import QueueberError
from queueber.limits import CLIENT_NAME_BYTES_MAX, SECOND_MS, TOPIC_LIST_MAX
from queueber.model import (
    CallerInfo,
    Histories,
    MetricFamily,
    Published,
    QueueSettings,
    ServerInfo,
    SessionTokens,
    SqlAnswer,
    Stats,
    TopicInfo,
)
from queueber.tls import TlsOptions, to_tls


class Client(Schedules):
    """A connection to a server; `connect` makes one.

    Share it between the threads or tasks of a program: concurrent calls are sent together. A lost
    connection is opened again when it is next needed. Close the client when you are done, or use
    it in a `with` block.
    """

    def __init__(
        self,
        address: str,
        *,
        connect_timeout: Seconds,
        retry_timeout: Seconds,
        name: str = "",
        token: Token | None = None,
        user: str | None = None,
        password: str | None = None,
        tls: TlsOptions | bool | None = None,
    ) -> None:
        self._target = Target(
            address,
            to_ms("connect_timeout", connect_timeout) / SECOND_MS,
            to_ms("retry_timeout", retry_timeout) / SECOND_MS,
            to_text("name", name, CLIENT_NAME_BYTES_MAX),
            to_identity(token, user, password),
            to_tls(tls),
        )
        self._calls: ClientCalls | None = None

    @classmethod
    def _over(cls, calls: ClientCalls) -> Self:
        """A client of a connection that is open already, and that others close."""
        made = cls.__new__(cls)
        made._target, made._calls = calls.connection.target, calls
        return made

    def __repr__(self) -> str:
        return f"<Client {self._target.address}{'' if self._calls else ' (not connected)'}>"

    def __enter__(self) -> Self:
        if self._calls is None:
            self._calls = ClientCalls(open_connection(self._target))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Disconnect. Calls under way fail.

        Items that polls are about to get are released first, which may take up to a second.
        """
        if self._calls is not None:
            close_connection(self._calls.connection)

    def queue(self, name: str = "default", *, must_exist: bool = False) -> Queue:
        """A queue by name. The server creates it when it is first used.

        With `must_exist` it is not created: its calls raise `NotFound` if there is none, so that a
        misspelt name is noticed.
        """
        return Queue(self._connected().queue(name, must_exist=must_exist))

    def create_queue(
        self, name: str, settings: QueueSettings | None = None, **changes: Unpack[SettingsArguments]
    ) -> bool:
        """Create a queue; False when it exists with the same settings.

        `settings` are those of another queue (`queue.stats().settings`), or the defaults; keyword
        arguments change single ones. `AlreadyExists` when it exists with other settings.
        """
        return wait_for(self._connected().create(name, settings, changes))

    def configure_queue(
        self, name: str, settings: QueueSettings | None = None, **changes: Unpack[SettingsArguments]
    ) -> None:
        """Change the settings that are named; the others stay as they are.

        With `settings` (such as `queue.stats().settings`, read before) all are set to these first.
        Without, the client reads the present settings and sends all of them, so if two programs
        configure a queue at the same moment, one may undo the other's change.
        """
        wait_for(self._connected().configure(name, settings, changes))

    def delete_queue(self, name: str) -> bool:
        """Delete a queue with all its items; False when there is none."""
        return wait_for(self._connected().delete(name))

    def queues(self) -> list[Stats]:
        """The statistics of every queue, in order of name."""
        return wait_for(self._connected().list_queues())

    # --- topics -----------------------------------------------------------------------------------

    def topic(self, name: str, *, must_exist: bool = False) -> Topic:
        """A topic by name. The server creates it when it is first used, if it is set to do so;
        with `must_exist` it never does, as for queues."""
        calls = self._connected()
        return Topic(calls, calls.topic(name, must_exist=must_exist))

    def create_topic(
        self,
        name: str,
        *,
        messages: AnyMessages = (),
        close: bool = False,
        schema: bytes | None = None,
        **settings: Unpack[TopicArguments],
    ) -> Published | None:
        """Create a topic; None when it exists with the same settings, else what it begins with.

        `AlreadyExists` when it exists with others. A new topic begins with `messages`, and with
        `close` takes no others; one that exists is not changed. `schema` is the document of its
        first schema, see `Topic.set_schema`.
        """
        calls = self._connected().topic_list
        made = calls.create(name, settings, messages, close=close, schema=schema)
        return wait_for(made)

    def describe_topic(self, name: str) -> TopicInfo:
        """A topic's settings, and how far its partitions reach.

        Unlike `topic(name).describe()` this is no use of the topic, which one with a `ttl` would
        count. It also tells of a topic that is deleted, but kept for its forks.
        """
        return wait_for(self._connected().topic_list.describe(name))

    def configure_topic(self, name: str, **settings: Unpack[TopicArguments]) -> None:
        """Change the settings that are named; the others stay as they are.

        The client reads the present settings and sends all of them, so if two programs configure a
        topic at the same moment, one may undo the other's change.
        """
        wait_for(self._connected().topic_list.configure(name, settings))

    def delete_topic(self, name: str) -> bool:
        """Delete a topic with all its messages and groups; False when there is none."""
        return wait_for(self._connected().topic_list.delete(name))

    def topics(self, prefix: str = "", *, after: str = "") -> Iterator[str]:
        """The names of the topics that begin with `prefix` and come after `after`, in order, page
        by page."""
        calls, more = self._connected().topic_list, True
        while more:
            names, _, more = wait_for(calls.page(prefix, after, TOPIC_LIST_MAX))
            yield from names
            after = names[-1] if names else after

    def topic_times(self, prefix: str = "", *, after: str = "") -> Iterator[tuple[str, int]]:
        """As `topics`, each with the time at which it was created, in ms since 1970."""
        calls, more = self._connected().topic_list, True
        while more:
            names, times, more = wait_for(
                calls.page(prefix, after, TOPIC_LIST_MAX, tells_times=True)
            )
            yield from zip(names, times, strict=True)
            after = names[-1] if names else after

    def publish(self, messages: Mapping[str, AnyMessages]) -> dict[str, Published]:
        """Publish to several topics, all messages or none: `{"orders": [...], "log": [...]}`."""
        return wait_for(publish_many(self._connected().connection, messages))

    def together(self) -> Together:
        """Steps over topics and queues that all happen, or none; see `Together`."""
        return Together(self._connected().connection)

    def sql(self, text: str, *params: object) -> SqlAnswer:
        """Run statements of SQL, and return what the last one answers with; see docs/sql.md.

        `params` are the values of `$1`, `$2` and so on, or of each `?`, for a single statement. The
        first statement that fails ends the call; those before it have happened.
        """
        from queueber.sql.calling import begin  # it is built on the client, and few programs use it

        return wait_for(begin(self._connected(), text, params))

    def backup(self) -> Backup:
        """Begin a backup of the whole server: all that was acknowledged before is in it.

        Close it, or use it in a `with` block: the server keeps only a few.
        """
        calls = self._connected().backups
        return Backup(calls, wait_for(calls.begin()))

    def server(self) -> ServerInfo:
        """The server's version and limits."""
        return wait_for(self._connected().describe())

    def who_am_i(self) -> CallerInfo:
        """The name and the grants of this program, as the server knows it."""
        return wait_for(self._connected().who_am_i())

    def issue_tokens(self) -> SessionTokens:
        """Tokens that stand for the password of this user, for an hour and for a week: the first
        for `connect(token=)`, the second for new tokens alone. A new password ends them.

        Only for a client that connected with a password, or with a refresh token.
        """
        return wait_for(self._connected().issue_tokens())

    def metrics(self) -> list[MetricFamily]:
        """What the server measures; docs/metrics.md says what each metric means."""
        return wait_for(self._connected().measures.metrics())

    def histories(
        self,
        queues: Iterable[str] = (),
        topics: Iterable[str] = (),
        *,
        span: str = "hour",
        points: int = 0,
    ) -> Histories:
        """How queues and topics went over time: a point every 10 seconds for the last `hour`, or
        every 5 minutes for the last `day`; the last `points` of them, or all.

        The server keeps histories of the 200 queues and 200 topics that are used most. One of which
        it has none has no series.
        """
        calls = self._connected().measures
        return wait_for(calls.histories(queues, topics, span, points))

    def _connected(self) -> ClientCalls:
        if self._calls is None:
            raise QueueberError("the client is not connected; write `with connect(...) as client:`")
        return self._calls
