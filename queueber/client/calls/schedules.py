"""The calls about schedules."""

from concurrent.futures import Future
from typing import Any

from queueber.client.arguments.schedules import to_schedule_name
from queueber.client.transport.connection import Connection
from queueber.client.transport.link import Link
from queueber.model import Schedule, ScheduleInfo, Stored
from queueber.wire.schedules import read_schedule_info, write_schedule


class ScheduleCalls:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, schedule: Schedule) -> "Future[Stored]":
        def send(link: Link) -> Any:
            request = link.service.putSchedule_request()
            write_schedule(request.init("schedule"), schedule)
            return request.send()

        # A repeat finds the schedule as it is to be.
        return self._connection.ask(send, lambda response: Stored(response.stored))

    def all(self) -> "Future[list[ScheduleInfo]]":
        return self._connection.submit(self._all)

    async def _all(self) -> list[ScheduleInfo]:
        found: list[ScheduleInfo] = []

        def send(link: Link) -> Any:
            return link.service.listSchedules(found[-1].name if found else "", 0)

        more = True
        while more:
            response = await self._connection.call(send, is_repeatable=True)
            found += [read_schedule_info(each) for each in response.schedules]
            more = response.more
        return found

    def describe(self, name: object) -> "Future[ScheduleInfo]":
        wanted = to_schedule_name(name)
        return self._connection.ask(
            lambda link: link.service.describeSchedule(wanted),
            lambda response: read_schedule_info(response.schedule),
        )

    def pause(self, name: object) -> "Future[bool]":
        wanted = to_schedule_name(name)
        return self._connection.ask(
            lambda link: link.service.pauseSchedule(wanted),
            lambda response: bool(response.paused),
            is_repeatable=False,
        )

    def resume(self, name: object) -> "Future[bool]":
        wanted = to_schedule_name(name)
        return self._connection.ask(
            lambda link: link.service.resumeSchedule(wanted),
            lambda response: bool(response.resumed),
            is_repeatable=False,
        )

    def run(self, name: object) -> "Future[bytes]":
        wanted = to_schedule_name(name)
        return self._connection.ask(
            lambda link: link.service.runSchedule(wanted),
            lambda response: bytes(response.id),
            is_repeatable=False,
        )

    def remove(self, name: object) -> "Future[bool]":
        wanted = to_schedule_name(name)
        return self._connection.ask(
            lambda link: link.service.removeSchedule(wanted),
            lambda response: bool(response.removed),
            is_repeatable=False,
        )
