"""The methods of the bootstrap object about schedules."""

from typing import Any

from queueber.rpc.calls import Answer, Methods, answer_with, call
from queueber.wire.schedules import read_schedule, write_schedule_info, write_schedules


class ScheduleMethods(Methods):
    @call
    def putSchedule_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        schedule = read_schedule(context.params.schedule)
        return answer_with(context, "stored", self._service.schedules.put(schedule, self._session))

    @call
    def listSchedules_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        self._session.answers.check()
        params = context.params
        page = self._service.schedules.page(params.after, params.limit, self._session)

        async def answer() -> None:
            write_schedules(context.results, await page)
            self._count(context)

        return answer()

    @call
    def describeSchedule_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        found = self._service.schedules.describe(context.params.name, self._session)

        async def answer() -> None:
            write_schedule_info(context.results.init("schedule"), await found)

        return answer()

    @call
    def pauseSchedule_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        paused = self._service.schedules.pause(context.params.name, self._session)
        return answer_with(context, "paused", paused)

    @call
    def resumeSchedule_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        resumed = self._service.schedules.resume(context.params.name, self._session)
        return answer_with(context, "resumed", resumed)

    @call
    def runSchedule_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        item_id = self._service.schedules.run_now(context.params.name, self._session)
        return answer_with(context, "id", item_id)

    @call
    def removeSchedule_context(self, context: Any) -> Answer:  # noqa: N802  the schema's name
        removed = self._service.schedules.remove(context.params.name, self._session)
        return answer_with(context, "removed", removed)
