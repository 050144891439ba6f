"""Jobs that the server enqueues at given times."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from queueber.client import Client
from queueber.errors import InvalidArgument
from queueber.jobs.codec import Own
from queueber.jobs.job import Job
from queueber.limits import PRIORITY_DEFAULT
from queueber.model import Stored
from queueber.worker.handlers.time_limit import to_timeout
from queueber.worker.handlers.work_item import Duration


class ScheduledJobs:
    """The part of `App` that is about schedules."""

    def schedule(
        self,
        name: str,
        when: str,
        job: Job[..., Any],
        arguments: Mapping[str, Any] | None = None,
        *,
        zone: str = "UTC",
        missed: str = "once",
        priority: int = PRIORITY_DEFAULT,
        attributes: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
        attempts: int | None = None,
        backoff: Sequence[Duration] | Duration | None = None,
        expires: Duration | None = None,
    ) -> Stored:
        """Have the server put a job into its queue at given times; `arguments` are by name.

        Say so whenever the program starts, in any number of processes: the answer is `unchanged` if
        the server has this schedule already, `changed` if it had another one of the name. `when`,
        `zone` and `missed` are as in `Client.schedule`. The job fails as often, runs as long and is
        tried again as it was declared, unless the call says otherwise; `expires` is in seconds.
        """
        if self.jobs.get(getattr(job, "name", "")) is not job:
            raise InvalidArgument(
                f"job: {job!r} is not a job of this app; declare it with @app.job"
            )
        given = {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise InvalidArgument(f"arguments: {given!r} is no mapping of names to values")
        contents = job.contents((), given, Own(to_timeout(timeout), backoff is not None))
        return self.client.schedule(
            name,
            when,
            queue=job.options.queue,
            contents=contents,
            zone=zone,
            missed=missed,
            priority=priority,
            attributes=attributes,
            attempts=job.options.attempts if attempts is None else attempts,
            backoff=backoff,
            expires=expires,
        )

    @property
    @abstractmethod
    def jobs(self) -> Mapping[str, Job[..., Any]]: ...

    @property
    @abstractmethod
    def client(self) -> Client: ...
