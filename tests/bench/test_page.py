"""What benchmarks write into docs/performance.md, and their exit codes."""

import sys
from pathlib import Path

import pytest

from bench import caps, unused, worker
from bench.measure import Report
from bench.page import marks, write_tables
from bench.peers.tables import PAGE

PARTS = {
    "worker pools": "worker",
    "typed jobs": "worker",
    "unused features": "unused",
    "engine against before": "quick",
    "caps": "caps",
    "batches": "batches",
}


def test_the_page_has_the_parts_that_benchmarks_write() -> None:
    text = PAGE.read_text()

    assert [text.count(mark) for part in PARTS.items() for mark in marks(*part)] == [
        1 for _ in PARTS for _ in ("begin", "end")
    ]


def test_tables_and_verdicts_are_written_between_the_marks(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n" + "old\n".join(marks("caps", "caps")) + "after\n")
    report = Report("Caps", {}, {"cores": 2, "load": 0.5})
    report.table("Costs", [{"kind": "none", "µs": 1.234, "items": 1000}])
    report.verdict("it is fast", is_met=True)
    report.verdict("it is small", is_met=False)

    write_tables("caps", "caps", report, ("Costs",), page=page)

    before, begin, taken, _, title, _, *table, _, held, missed, end, after = (
        page.read_text().splitlines()
    )
    assert taken.startswith("Taken ")
    assert taken.endswith("with `python -m bench.caps --page`; cores 2.")
    assert (before, after, title) == ("before", "after", "Costs:")
    assert (f"{begin}\n", f"{end}\n") == marks("caps", "caps")
    assert table == ["| kind | µs | items |", "| --- | --- | --- |", "| none | 1.23 | 1,000 |"]
    assert (held, missed) == ("- Held: it is fast.", "- **Missed**: it is small.")
    assert report.exit_code == 1


@pytest.mark.parametrize(("limit", "code"), [(100.0, 0), (0.01, 1)])
def test_typed_jobs_are_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: float, code: int
) -> None:
    """With pools that take no time: the verdict is what is tested."""
    monkeypatch.setattr(worker, "_JOB_RATIO_MAX", limit)
    monkeypatch.setattr(worker, "_run_job", lambda *_: 2.0)
    monkeypatch.setattr(sys, "argv", ["worker", "--jobs", "--dir", str(tmp_path)])

    assert worker.main() == code


@pytest.mark.parametrize(("limit", "code"), [(100.0, 0), (0.01, 1)])
def test_features_that_a_queue_does_not_use_are_judged(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, limit: float, code: int
) -> None:
    monkeypatch.setattr(unused, "_RATIO_MAX", limit)
    monkeypatch.setattr(unused, "_SCHEDULES", 1)
    monkeypatch.setattr(unused, "_BATCHES", 1)
    arguments = ["--items", "100", "--repeat", "1", "--dir", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["unused", *arguments])

    assert unused.main() == code


def test_caps_are_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(caps, "_KEYS", (10,))
    monkeypatch.setattr(caps, "_CAPS", {"none": {}, "5 at once": caps._CONCURRENCY})
    monkeypatch.setattr(sys, "argv", ["caps", "--items", "200", "--dir", str(tmp_path)])

    caps.main()
