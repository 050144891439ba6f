"""Old clients work unchanged: every operation, over a socket, each side in its own process."""

import subprocess
import sys
from pathlib import Path

from queueber.testing import running_server


def test_client_of_the_original_schema_passes_every_operation() -> None:
    program = Path(__file__).with_name("original_client.py")

    with running_server() as server:
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
