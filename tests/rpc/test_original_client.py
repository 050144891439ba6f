"""Old clients work unchanged: every operation, over a socket, each side in its own process."""

import subprocess
import sys
from pathlib import Path

import queueber
from queueber.testing import running_server


def test_client_of_the_original_schema_passes_every_operation() -> None:
    program = Path(__file__).with_name("original_client.py")

    with running_server() as server:
        with queueber.connect(server.address) as client:
            # As `docs/protocol.md` advises for queues that clients of the original use.
            client.configure_queue("default", attempts_max=0, backoff=[0], isolation=False)
        ended = subprocess.run(
            [sys.executable, str(program), server.address],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [
        "adds_and_polls_in_order",
        "empty_poll_waits_and_ends",
        "waiting_poll_wakes",
        "extended_lease_lasts",
        "bad_input_is_refused",
        "what_the_original_answered_is_answered",
        "many_removes_in_flight_are_all_answered",
        "large_items_come_in_bounded_answers",
        "ok",
    ]
    assert ended.returncode == 0
