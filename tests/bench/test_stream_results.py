"""The result of the comparison of streams: how it is shown, and that the docs show the newest."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.comparison import RESULTS
from bench.peers.results import Result
from bench.peers.tables import PAGE
from bench.streams import page
from bench.streams.page import BEGIN, END, render
from tests.bench.test_results import line, rates


def figures(rate: float, p99_ms: float) -> dict[str, dict[str, float]]:
    latency = {"p99 ms": p99_ms, "lowest": p99_ms, "highest": p99_ms}
    return {
        "append, 1 stream": rates(rate),
        "bytes, 1 reader": rates(rate * 1_000_000),
        "SSE p99 ms": latency,
    }


RESULT = Result(
    taken_at="2026-01-01T00:00+00:00",
    command="python -m bench.streams",
    machine={"cores": 2},
    peers={
        "Queueber": line(figures(3000, 2.0)),
        "Slow": line(figures(1000, 9.0)),
        "Fast": line(figures(6000, 1.0)),
        "Careless": line(figures(9000, 1.0), "no: now and then"),
    },
    limits={},
    left_out={"Absent": "it cannot be installed"},
)


def test_tables_show_the_ratio_to_each_server_that_syncs() -> None:
    shown = render(RESULT)

    assert "| **Queueber** | 3,000 (1,500 to 6,000) | - | - | - |" in shown
    assert "| Queueber / Slow | 3.00x | - | - | - |" in shown
    assert "| Queueber / Fast | 0.50x | - | - | - |" in shown
    assert "Queueber / Careless" not in shown
    assert "Not measured: Absent, because it cannot be installed.\n" in shown


def test_bytes_are_shown_in_megabytes_and_fewer_milliseconds_are_better() -> None:
    shown = render(RESULT)

    assert "| Slow | 1,000 (500 to 2,000) | - | - |" in shown
    assert "| **Queueber** | - | 2.0 (2.0 to 2.0) |" in shown
    assert "| Queueber / Slow | - | 4.50x |" in shown


def test_a_run_without_us_is_shown_as_well() -> None:
    peers = {name: each for name, each in RESULT.peers.items() if name != "Queueber"}

    shown = render(replace(RESULT, peers=peers))

    assert "| Slow | 1,000 (500 to 2,000) |" in shown
    assert " / " not in shown


def test_page_is_changed_between_its_marks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "performance.md"
    written.write_text(f"before\n{BEGIN}old\n{END}after\n")
    monkeypatch.setattr(page, "PAGE", written)

    page.write_page(RESULT)

    assert written.read_text() == f"before\n{BEGIN}{render(RESULT)}{END}after\n"


def test_docs_hold_the_newest_result_if_there_is_one() -> None:
    text = PAGE.read_text()
    file = RESULTS / "streams.json"

    assert text.count(BEGIN) == text.count(END) == 1
    if file.is_file():
        assert render(replace(RESULT, **json.loads(file.read_text()))) in text
