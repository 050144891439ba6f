"""The audit log: what is in it, and what is left out."""

import json
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from queueber.auth.audit import Audit
from queueber.clock import ManualClock
from queueber.errors import PermissionDenied, QueueberError

WHO: dict[str, object] = {"caller": "10.0.0.1:5", "identity": "ci"}


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_an_act_is_one_line_of_json(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    audit = Audit(file, ManualClock())

    audit.act(WHO, "purge", {"queue": "ocr\nfake"}, "ok")

    assert lines(file) == [
        {
            "at": "2023-11-14T22:13:20.000+00:00",
            "caller": "10.0.0.1:5",
            "identity": "ci",
            "method": "purge",
            "queue": "ocr\nfake",
            "outcome": "ok",
        }
    ]
    assert file.stat().st_mode & 0o777 == 0o600


def test_without_a_file_the_log_has_it() -> None:
    with capture_logs() as logged:
        Audit(None, ManualClock()).act(WHO, "purge", {"queue": "ocr"}, "NOT_FOUND")

    assert logged == [
        {
            "event": "audit",
            "log_level": "info",
            **WHO,
            "method": "purge",
            "queue": "ocr",
            "outcome": "NOT_FOUND",
        }
    ]


def test_refusals_of_one_caller_are_limited_and_what_was_left_out_is_counted(
    tmp_path: Path,
) -> None:
    file, clock = tmp_path / "audit.jsonl", ManualClock()
    audit = Audit(file, clock)
    error = PermissionDenied("caller 'ci' lacks 'add' on queue 'q'")

    for _ in range(100):
        audit.refused(WHO, "ci", {"method": "add"}, error)
    audit.refused({"identity": "other"}, "other", {"method": "add"}, error)
    clock.advance(1000)
    audit.refused(WHO, "ci", {"method": "add"}, error)

    found = lines(file)
    assert len(found) == 22
    assert [each.get("left_out") for each in found] == [None] * 21 + [80]
    assert found[0]["outcome"] == "PERMISSION_DENIED"
    assert found[0]["reason"] == "caller 'ci' lacks 'add' on queue 'q'"
    assert found[20]["identity"] == "other"


def test_a_file_that_was_moved_away_is_opened_again(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    audit = Audit(file, ManualClock())
    audit.act(WHO, "pause", {}, "ok")
    file.rename(tmp_path / "audit.jsonl.1")
    audit.act(WHO, "resume", {}, "ok")

    audit.reopen()
    audit.act(WHO, "purge", {}, "ok")

    assert [each["method"] for each in lines(tmp_path / "audit.jsonl.1")] == ["pause", "resume"]
    assert [each["method"] for each in lines(file)] == ["purge"]


def test_a_file_that_cannot_be_opened_is_told_and_the_old_one_stays(tmp_path: Path) -> None:
    file = tmp_path / "audit.jsonl"
    audit = Audit(file, ManualClock())
    file.unlink()
    file.mkdir()

    with pytest.raises(QueueberError, match=r"cannot write the audit log .*: Is a directory"):
        audit.reopen()
    audit.act(WHO, "purge", {}, "ok")


def test_what_cannot_be_written_is_in_the_log(tmp_path: Path) -> None:
    audit = Audit(Path("/dev/full"), ManualClock())

    with capture_logs() as logged:
        audit.act(WHO, "purge", {"queue": "q"}, "ok")

    assert [(each["event"], each["queue"]) for each in logged] == [("audit_not_written", "q")]
