"""Histories: what was begun and ended, in memory and in files, by one process or several."""

import io
import threading
from math import inf
from pathlib import Path

import pytest

from faults.history import Call, History, Outcome, merged, printed
from faults.recorder import SENT_AGAIN, Recorder, outcome_of, read_histories
from queueber.errors import Aborted, Internal, OutcomeUnknown, Unavailable


def test_call_that_was_answered_is_ok_with_its_times_arguments_and_answer() -> None:
    times = iter([5.0, 7.5])
    recorder = Recorder(now_ms=lambda: next(times))

    with recorder.call("w", "poll", "q", lease_ms=10) as call:
        call.answered(lease="l", ids=["a"])

    assert recorder.history.calls == [
        Call("w", "poll", 5.0, 7.5, Outcome.OK, {"lease_ms": 10}, {"lease": "l", "ids": ["a"]}, "q")
    ]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (Unavailable("full"), Outcome.REFUSED),
        (Aborted("gap"), Outcome.REFUSED),
        (OutcomeUnknown("lost"), Outcome.UNKNOWN),
        (Internal("the sync failed"), Outcome.UNKNOWN),
        (ConnectionError(), Outcome.UNKNOWN),
        (KeyboardInterrupt(), Outcome.UNKNOWN),
    ],
)
def test_only_an_error_that_says_that_nothing_happened_is_a_refusal(
    error: BaseException, outcome: Outcome
) -> None:
    recorder = Recorder()

    with pytest.raises(type(error)), recorder.call("p", "add"):
        raise error

    assert outcome_of(error) is outcome
    assert [call.outcome for call in recorder.history.calls] == [outcome]


@pytest.mark.parametrize("operation", SENT_AGAIN)
def test_error_of_a_call_that_clients_send_again_leaves_the_outcome_unknown(operation: str) -> None:
    recorder = Recorder()

    with pytest.raises(Unavailable), recorder.call("p", operation):
        raise Unavailable("the connection was lost")

    assert [call.outcome for call in recorder.history.calls] == [Outcome.UNKNOWN]


def test_call_of_unknown_outcome_has_no_end() -> None:
    recorder = Recorder()

    with pytest.raises(OutcomeUnknown), recorder.call("p", "add"):
        raise OutcomeUnknown("lost")

    assert recorder.history.calls[0].ended_ms == inf
    assert recorder.history.calls[0].may_have_happened


def test_files_of_several_processes_are_merged_by_time(tmp_path: Path) -> None:
    written = History()
    for name, began_ms in (("b", 2.0), ("a", 1.0)):
        with (tmp_path / f"{name}.jsonl").open("w") as file:
            recorder = Recorder(now_ms=iter([began_ms, began_ms + 5]).__next__, file=file)
            with recorder.call(name, "add", contents=["x"]) as call:
                call.answered(ids=["1"])
            written.calls += recorder.history.calls

    read = read_histories(tmp_path)

    assert [call.client for call in read.calls] == ["a", "b"]
    assert read.calls == merged([written]).calls


def test_call_of_a_process_that_was_killed_in_it_has_an_unknown_outcome(tmp_path: Path) -> None:
    with (tmp_path / "a.jsonl").open("w") as file:
        Recorder(now_ms=lambda: 3.0, file=file).begin("w", "remove", "q", {"ids": ["1"]})
        file.write('{"number": 2, "client": "w"')  # it was killed while it wrote

    assert read_histories(tmp_path).calls == [
        Call("w", "remove", 3.0, inf, Outcome.UNKNOWN, {"ids": ["1"]}, queue="q")
    ]


def test_threads_may_share_a_recorder() -> None:
    file = io.StringIO()
    recorder = Recorder(file=file)

    def run() -> None:
        for _ in range(100):
            with recorder.call("t", "poll"):
                pass

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(recorder.history.calls) == 400
    assert len(file.getvalue().splitlines()) == 800


def test_history_of_a_queue_has_its_calls_and_what_happened_to_all() -> None:
    recorder = Recorder(now_ms=lambda: 0)
    for queue in ("a", "b", ""):
        with recorder.call("c", "restart" if not queue else "poll", queue):
            pass

    assert recorder.history.queues() == ["a", "b"]
    assert [call.queue for call in recorder.history.of("a").calls] == ["a", ""]


def test_long_or_strange_contents_are_kept_as_a_digest() -> None:
    assert printed(b"short") == "short"
    assert printed(b"\xff") != printed(b"\xfe")
    assert printed(b"x" * 100) != printed(b"x" * 101)
    assert len(printed(b"x" * 1_000_000)) < 50
