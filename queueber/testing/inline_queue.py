"""A client and a queue in line: as much of them as an app, or who follows batches, uses."""

import asyncio
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any, Unpack

from queueber.client.arguments.callbacks import to_callback
from queueber.client.arguments.item_options import OwnOptions, to_own_options
from queueber.client.arguments.new_items import to_new_items
from queueber.client.arguments.values import Contents, to_batch
from queueber.client.transport.futures import answer_future, fail_future
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import CallbackInfo, Receipt, ScheduleInfo, Stored
from queueber.testing.inline_jobs import InlineJobs
from queueber.testing.inline_schedules import InlineSchedules


class InlineClient:
    def __init__(self, jobs: InlineJobs) -> None:
        self._jobs = jobs
        self._schedules = InlineSchedules()

    def __getattr__(self, name: str) -> Any:
        raise _without_server("client", name)

    def queue(self, name: str = "default") -> "InlineQueue":
        return InlineQueue(self._jobs, name)

    def close(self) -> None:
        pass

    # --- schedules --------------------------------------------------------------------------------

    def schedule(self, name: str, when: str, **given: Any) -> Stored:
        return self._schedules.put(name, when, given)

    def schedules(self) -> list[ScheduleInfo]:
        return self._schedules.all()

    def describe_schedule(self, name: str) -> ScheduleInfo:
        return self._schedules.describe(name)

    def run_schedule(self, name: str) -> bytes:
        """Run its job here, at once; nothing else makes it run."""
        (item_id,), begun = self._jobs.add(*self._schedules.run(name))
        self._jobs.run(begun)
        return item_id

    def remove_schedule(self, name: str) -> bool:
        return self._schedules.remove(name)


class InlineQueue:
    def __init__(self, jobs: InlineJobs, name: str) -> None:
        self._jobs = jobs
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise _without_server("queue", name)

    def add(self, contents: Contents, **options: Any) -> list[bytes]:
        ids, begun = self._jobs.add(self.name, to_new_items(contents, **options))
        self._jobs.run(begun)
        return ids

    def add_soon(self, contents: Contents, **options: Any) -> "Future[list[bytes]]":
        """In asyncio the jobs run on the loop that enqueues them."""
        future: Future[list[bytes]] = Future()
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            future.set_result(self.add(contents, **options))
            return future
        ids, begun = self._jobs.add(self.name, to_new_items(contents, **options))

        async def run() -> None:
            try:
                await self._jobs.run_async(begun)
            except BaseException as error:
                fail_future(future, error)
                raise
            answer_future(future, ids)

        future.task = loop.create_task(run())  # type: ignore[attr-defined]  # else it is collected
        return future

    # --- batches ----------------------------------------------------------------------------------

    def when_complete(
        self,
        batch: str,
        contents: bytes,
        *,
        to: str | None = None,
        key: str | None = None,
        priority: int = PRIORITY_DEFAULT,
        attributes: Mapping[str, str] | None = None,
        **own: Unpack[OwnOptions],
    ) -> CallbackInfo:
        given = contents, key, priority, attributes, to_own_options(**own)
        callback = to_callback(self.name if to is None else to, *given)
        self._jobs.run(self._jobs.give(self.name, to_batch(batch), callback))
        return self.callback(batch)

    def callback(self, batch: str) -> CallbackInfo:
        return self._jobs.callback(self.name, to_batch(batch))

    def receipt(self, batch: str) -> Receipt:
        return self._jobs.receipt(self.name, to_batch(batch))

    def wait_for_batch(self, batch: str, timeout: object = None) -> Receipt:
        """The receipt as it is: whatever could complete the batch has been done."""
        return self.receipt(batch)


def _without_server(what: str, name: str) -> AttributeError:
    return AttributeError(
        f"jobs run in line here, without a server, so the {what} of the app has no {name!r}; "
        "queueber.testing.running_server has all of it"
    )
