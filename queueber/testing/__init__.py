"""For the tests of programs that use Queueber: servers, time that can be moved, jobs in line.

`queueber_pytest` has fixtures of them.
"""

from queueber.testing.handler_calls import run_handler
from queueber.testing.inline_block import inline
from queueber.testing.inline_job import InlineJob
from queueber.testing.inline_jobs import InlineJobs
from queueber.testing.server_process import (
    START_SECONDS_MAX,
    STOP_SECONDS_MAX,
    ServerProcess,
    running_server,
)

__all__ = [
    "START_SECONDS_MAX",
    "STOP_SECONDS_MAX",
    "InlineJob",
    "InlineJobs",
    "ServerProcess",
    "inline",
    "run_handler",
    "running_server",
]
