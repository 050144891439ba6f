"""Simulated histories: none is wrong, each can be told again, and a bug would not stay hidden."""

import functools
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from faults.history import Outcome
from faults.simulation import faulty_server
from faults.simulation.__main__ import replay_command, run_many, tell
from faults.simulation.quiet import quiet_logs
from faults.simulation.small_limits import small_limits
from faults.simulation.telling import lines_of
from faults.simulation.world import Told, simulate
from tests.faults.all_planted_bugs import ALL_BUGS, finding_seed, recorded_seeds
from tests.faults.planted_bugs import Bug, answer_before_the_sync

HISTORIES = int(os.environ.get("QUEUEBER_TEST_HISTORIES", "200"))


FIRST = 60


@functools.cache
def first_histories() -> list[Told]:
    """Those that more than one test looks at."""
    return [simulate(seed) for seed in range(FIRST)]


@pytest.fixture(autouse=True)
def _as_the_command_does() -> Iterator[None]:
    with quiet_logs(), small_limits():
        yield


@pytest.mark.slow
@pytest.mark.timeout(60 + HISTORIES)
def test_simulated_histories_are_right() -> None:
    calls = crashes = unknown = 0
    for seed in range(HISTORIES):
        told = first_histories()[seed] if seed < FIRST else simulate(seed)
        assert told.wrong == [], replay_command(seed)
        calls += len(told.history.calls)
        crashes += told.crashes
        unknown += sum(not call.is_ok for call in told.history.calls)

    assert calls > 20 * HISTORIES, "hardly any load"
    assert crashes > HISTORIES / 2, "hardly any crash"
    assert unknown > HISTORIES, "hardly any call was lost or refused"


def test_simulated_callers_make_every_call_that_the_checker_knows() -> None:
    made = {call.operation for told in first_histories() for call in told.history.calls}

    assert made >= {
        "add", "poll", "extend", "remove", "complete", "fail", "release", "cancel", "purge",
        "reschedule",
        "redrive", "pause", "resume", "receipt", "wait_batch", "read_results", "ack_results",
        "hang_up", "restart", "clock_step", "publish", "read", "trim", "fork", "close", "ack",
        "reset", "cursor", "create_topic", "delete_topic", "set_schema", "schemas",
        "together", "create_group", "pause_group", "resume_group", "configure", "subscribe",
        "pushed", "grant", "unsubscribe", "ack_up_to", "put_schedule", "pause_schedule",
        "resume_schedule", "run_schedule", "remove_schedule", "when_complete",
    }  # fmt: skip


def test_calls_of_many_kinds_are_lost_though_the_server_lives_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faulty_server, "_CRASHES_MAX", 0)

    lost: set[str] = set()
    repeats = 0
    for told in map(simulate, range(50)):
        if not told.crashes:
            calls = told.history.calls
            unknown = [call for call in calls if call.outcome is Outcome.UNKNOWN]
            lost.update(call.operation for call in unknown)
            turns = [call.given("producer") for call in unknown if call.given("producer")]
            repeats += sum(call.is_ok and call.given("producer") in turns for call in calls)

    assert lost >= {"add", "poll", "complete", "read_results"}
    assert repeats > 0, "no producer has sent a lost call again"


@pytest.mark.slow
@pytest.mark.parametrize("bug", ALL_BUGS, ids=lambda bug: bug.__name__)
def test_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)

    assert finding_seed(bug, recorded_seeds()) is not None


def test_a_recorded_seed_is_tried_first_and_a_stale_one_does_not_hide_a_bug(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bug = answer_before_the_sync
    bug(monkeypatch)
    found = [seed for seed in range(10) if simulate(seed).wrong]
    stale = next(seed for seed in range(10) if seed not in found)

    assert finding_seed(bug, {bug.__name__: found[1]}) == found[1]
    assert finding_seed(bug, {bug.__name__: stale}) == finding_seed(bug, {}) == found[0]


def test_same_seed_is_the_same_history_in_any_process() -> None:
    program = "\n".join(
        [
            "from faults.simulation.quiet import quiet_logs",
            "from faults.simulation.telling import lines_of",
            "from faults.simulation.world import simulate",
            "with quiet_logs():",
            "    for seed in range(10):",
            "        print(*lines_of(simulate(seed)), sep='\\n')",
        ]
    )

    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }

    assert len(told) == 1


def test_history_is_told_step_by_step() -> None:
    lines = list(lines_of(simulate(5)))

    assert any("producer 0: add(contents=" in line for line in lines)
    assert any("write 1" in line for line in lines)
    assert lines[-1] == "nothing is wrong"


def test_failure_names_its_seed_and_the_command_that_replays_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer_before_the_sync(monkeypatch)

    assert run_many(0, 100, 1) == 1

    shown = capsys.readouterr().out
    seed = int(shown.rpartition("SEED=")[2].rstrip("`\n"))
    assert "lost: " in shown
    assert tell(seed) == 1
    assert "lost: " in capsys.readouterr().out


def test_many_histories_end_in_a_line_of_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_many(0, 10, 1) == 0

    assert capsys.readouterr().out.splitlines()[-1].startswith("10 of 10 histories, ")
