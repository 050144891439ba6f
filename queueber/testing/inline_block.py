"""Jobs in line: within the block of `inline`, `app.enqueue` runs the job at once, in this thread.

What goes through an app stays as it is (arguments are checked, encoded and decoded, middleware and
results too); in place of a server and a worker there are an `InlineClient`, with queues, and its
results.
"""

import contextlib
from collections.abc import Iterator, Sequence

from queueber.jobs.app import App
from queueber.model import QueueSettings
from queueber.testing.handler_calls import HandlerCalls, check_attempts, inline_settings
from queueber.testing.inline_jobs import InlineJobs
from queueber.testing.inline_queue import InlineClient
from queueber.worker.handlers.middleware import Middleware
from queueber.worker.worker_settings import LoopName, to_listed

ATTEMPTS_MAX = QueueSettings().attempts_max


@contextlib.contextmanager
def inline(
    app: App,
    *,
    attempts_max: int = ATTEMPTS_MAX,
    middleware: Sequence[Middleware | str] = (),
    loop: LoopName = "asyncio",
) -> Iterator[InlineJobs]:
    """Within this block `app.enqueue` runs the job at once, in this thread, without a server.

    Arguments and results are checked and encoded as in reality. A job that fails is tried again at
    once: `attempts_max` times in all, unless the job or the `enqueue` says how often. Then its
    handle raises `JobDied`, whose cause is what the job raised. `delay`, `at` and `expires` are
    checked and not waited for, and a `key` stores one job. A job that comes `after` others runs
    when they are done, the callback of a batch (`app.when_complete`) when that is complete.

    A coroutine that runs longer than its `timeout` is cancelled. A function is waited for, and
    fails if it took longer. `middleware` and `loop` are as for `Worker`.
    """
    check_attempts("attempts_max", attempts_max)
    settings = inline_settings(
        app,
        weights=app.queue_weights(),
        loop=loop,
        middleware=to_listed("middleware", middleware, "middleware"),
    )
    jobs = InlineJobs(app, HandlerCalls(settings), attempts_max)
    with app.sent_to(InlineClient(jobs), jobs.results):
        yield jobs
