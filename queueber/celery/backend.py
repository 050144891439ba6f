"""The result backend behind `queueber://` addresses of Celery.

Each result is a topic: its last message is the task's state. The server deletes the topic when it
was not used for `result_expires`. Who waits for a result waits in a read of its topic.

The parts of a chord are counted in a topic, too. A part publishes one message under its own name,
and the offset says how many parts came before it. A part that is run again, because its worker was
killed, is recognised and gets the same number: so it is not counted twice, and if it is the last
one it calls the chord's body again.
"""

import threading
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from celery import states
from celery.backends.base import KeyValueStoreBackend
from celery.exceptions import TimeoutError as CeleryTimeoutError

from queueber.celery.clients import ClientOfProcess
from queueber.client import Client, Topic
from queueber.clock import seconds
from queueber.errors import AlreadyExists, NotFound

WAIT_SECONDS_MAX = 10.0
"""Of one call that waits for a result."""
EXPIRES_NEVER_SECONDS = 365 * 24 * 3600
_PART = b"part"
_DONE = b"done"


class QueueberBackend(KeyValueStoreBackend):
    """Results and counters in topics."""

    supports_native_join = True
    supports_autoexpire = True
    implements_incr = True

    def __init__(self, app: Any, url: str | None = None, **kwargs: Any) -> None:
        super().__init__(app, url=url, **kwargs)
        options = app.conf.get("result_backend_transport_options") or {}
        self._process = ClientOfProcess(url or "queueber://", options, "celery results")
        self._local = threading.local()

    @property
    def client(self) -> Client:
        return self._process.get()

    # --- keys and values --------------------------------------------------------------------------

    @staticmethod
    def _name(key: bytes | str) -> str:
        return key.decode() if isinstance(key, bytes) else key

    def _topic(self, key: bytes | str) -> Topic:
        return self.client.topic(self._name(key), must_exist=True)

    def _ensure(self, key: bytes | str, first: bytes | None = None) -> bool:
        """Create the topic of a key, with a first message; False if it is there already."""
        begins_with = [] if first is None else [first]
        ttl = timedelta(seconds=self.expires or EXPIRES_NEVER_SECONDS)
        try:
            made = self.client.create_topic(self._name(key), messages=begins_with, ttl=ttl)
        except AlreadyExists:
            return False
        return made is not None

    def get(self, key: bytes | str) -> bytes | None:
        try:
            found = self._topic(key).read(last=1).payloads
        except NotFound:
            return None
        return found[-1] if found else None

    def mget(self, keys: list[bytes | str]) -> list[bytes | None]:
        return [self.get(key) for key in keys]

    def set(self, key: bytes | str, value: bytes | str) -> None:
        data = value.encode() if isinstance(value, str) else value
        if not self._ensure(key, data):
            self._topic(key).publish(data)

    def delete(self, key: bytes | str) -> None:
        if self._name(key).startswith(self._name(self.chord_keyprefix)):
            self._topic(key).publish(_DONE)  # a part that is run again must see that
        else:
            self.client.delete_topic(self._name(key))

    def close(self) -> None:
        """End the connection; the next call opens another."""
        self._process.close()

    def cleanup(self) -> None:
        """The server deletes what expires."""

    # --- waiting ----------------------------------------------------------------------------------

    def wait_for(
        self,
        task_id: str,
        timeout: float | None = None,
        interval: float = 0.5,
        no_ack: bool = True,
        on_interval: Any = None,
    ) -> Any:
        """The state of a task that has ended. `interval` is how often `on_interval` is called."""
        self._ensure_not_eager()
        give_up_at = None if timeout is None else seconds() + timeout
        step = interval if on_interval else WAIT_SECONDS_MAX
        key = self.get_key_for_task(task_id)
        while True:
            meta = self.get_task_meta(task_id)
            if meta["status"] in states.READY_STATES:
                return meta
            left = step if give_up_at is None else min(step, give_up_at - seconds())
            if left <= 0:
                raise CeleryTimeoutError("The operation timed out.")
            self._wait_for_change(key, meta, left)
            if on_interval:
                on_interval()

    def _wait_for_change(self, key: bytes, seen: Any, wait: float) -> None:
        self._ensure(key)
        topic = self._topic(key)
        page = topic.read(last=1)
        if page.payloads and self.decode_result(page.payloads[-1])["status"] != seen["status"]:
            return
        topic.read(start=page.end_offset, wait=wait, moves=True)

    def get_many(
        self,
        task_ids: Any,
        timeout: float | None = None,
        interval: float = 0.5,
        no_ack: bool = True,
        on_message: Any = None,
        on_interval: Any = None,
        max_iterations: int | None = None,
        READY_STATES: Any = states.READY_STATES,  # noqa: N803
    ) -> Iterator[tuple[str, Any]]:
        """The states of tasks as they end, in the order of their ids."""
        give_up_at = None if timeout is None else seconds() + timeout
        for task_id in task_ids:
            left = None if give_up_at is None else max(give_up_at - seconds(), 0.0)
            meta = self.wait_for(
                task_id, timeout=left, interval=interval or 0.5, on_interval=on_interval
            )
            if on_message is not None:
                on_message(meta)
            yield task_id, meta

    # --- chords -----------------------------------------------------------------------------------

    def on_chord_part_return(self, request: Any, state: str, result: Any, **kwargs: Any) -> None:
        if not request.group:
            return
        if self.get(self.get_key_for_chord(request.group)) == _DONE:
            return
        self._local.part = request.id
        try:
            super().on_chord_part_return(request, state, result, **kwargs)
        finally:
            self._local.part = None

    def incr(self, key: bytes | str) -> int:
        """How many parts of a chord have ended, with this one; see the top of this file."""
        self._ensure(key)
        producer = (self._local.part, 1, 1)
        published = self._topic(key).publish(_PART, producer=producer)
        return published.offsets[0] + 1

    def __reduce__(self, args: Any = (), kwargs: Any = None) -> Any:
        return super().__reduce__(args, {**(kwargs or {}), "url": self.url})
