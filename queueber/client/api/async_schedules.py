"""What a client does with schedules: items that the server adds to queues at given times."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Unpack

from queueber.client.arguments.item_options import OwnOptions, to_own_options
from queueber.client.arguments.schedules import to_schedule
from queueber.client.calls.client_calls import ClientCalls
from queueber.client.transport.futures import wait_for_async
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import ScheduleInfo, Stored


class AsyncSchedules:
    """The part of `AsyncClient` that is about schedules."""

    async def schedule(
        self,
        name: str,
        when: str,
        *,
        queue: str = "default",
        contents: bytes = b"",
        zone: str = "UTC",
        missed: str = "once",
        priority: int = PRIORITY_DEFAULT,
        attributes: Mapping[str, str] | None = None,
        **own: Unpack[OwnOptions],
    ) -> Stored:
        """Have the server add an item to a queue at given times, once for each, whatever number of
        programs says so: `created`, `changed`, or `unchanged` if it is so already.

        `when` has the five fields of cron (`0 3 * * *`) in the time zone `zone`, or is `@daily` and
        the like, or `@every 90s`. `missed` says what becomes of runs whose time passed while the
        server was stopped or the queue full: `once` for all, `skip`, or `all`. The attributes of an
        item have the name of the schedule and the time of the run. `attempts`, `backoff`, `timeout`
        and `expires` of each item are as in `add`, `expires` in seconds. See docs/schedules.md.
        """
        options = to_own_options(**own)
        made = to_schedule(name, when, queue, contents, zone, missed, priority, attributes, options)
        return await wait_for_async(self._connected().schedules.put(made))

    async def schedules(self) -> list[ScheduleInfo]:
        """All schedules, in order of name, without their contents."""
        return await wait_for_async(self._connected().schedules.all())

    async def describe_schedule(self, name: str) -> ScheduleInfo:
        """A schedule with its contents, and when it runs next."""
        return await wait_for_async(self._connected().schedules.describe(name))

    async def pause_schedule(self, name: str) -> bool:
        """Run it no more until it is resumed; False if it was paused."""
        return await wait_for_async(self._connected().schedules.pause(name))

    async def resume_schedule(self, name: str) -> bool:
        """Run it from its next time on; False if it was not paused. What came during the pause is
        not made up for."""
        return await wait_for_async(self._connected().schedules.resume(name))

    async def run_schedule(self, name: str) -> bytes:
        """Add its item now, also if it is paused, and return the id. Its next time stays."""
        return await wait_for_async(self._connected().schedules.run(name))

    async def remove_schedule(self, name: str) -> bool:
        """Remove it; False when there is none. Items that it has added stay."""
        return await wait_for_async(self._connected().schedules.remove(name))

    @abstractmethod
    def _connected(self) -> ClientCalls: ...
