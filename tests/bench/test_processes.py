"""A benchmark leaves nothing running, whatever its servers do."""

import os
from pathlib import Path

import pytest

from bench.peers import processes
from bench.peers.processes import free_ports, process_ids, running_process

_SHELL = "/bin/sh"


def _is_alive(process_id: int) -> bool:
    return process_id in process_ids(process_id)


def test_ports_are_different() -> None:
    assert len(set(free_ports(20))) == 20


def test_a_server_ends_with_all_that_it_started(tmp_path: Path) -> None:
    """Also what left its session, or has lost its parent."""
    started = tmp_path / "started"
    script = f"setsid sleep 60 & (sleep 60 & sleep 60 & touch {started}) & wait"

    with running_process([_SHELL, "-c", script], tmp_path, started.exists) as root:
        family = process_ids(root)
        assert root in family

    assert not [process_id for process_id in family if _is_alive(process_id)]


def test_a_server_that_does_not_want_to_end_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_STOP_SECONDS_MAX", 0.1)
    started = tmp_path / "started"
    script = f"trap '' TERM; touch {started}; while :; do sleep 60; done"

    with running_process([_SHELL, "-c", script], tmp_path, started.exists) as root:
        family = process_ids(root)

    assert not [process_id for process_id in family if _is_alive(process_id)]


def test_a_server_that_ends_at_its_start_is_told_with_its_log(tmp_path: Path) -> None:
    command = [_SHELL, "-c", "echo the port is taken; exit 1"]

    with (
        pytest.raises(SystemExit, match="sh did not start:\nthe port is taken"),
        running_process(command, tmp_path, lambda: False),
    ):
        pytest.fail("it did start")


def test_a_server_that_is_never_ready_is_given_up_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_START_SECONDS_MAX", 0.1)
    before = process_ids(os.getpid())

    with (
        pytest.raises(SystemExit, match="sleep did not start"),
        running_process(["/bin/sleep", "60"], tmp_path, lambda: False),
    ):
        pytest.fail("it did start")

    assert set(process_ids(os.getpid())) <= set(before)
