"""The result of the comparison of topics: how it is shown, and that the docs show the newest."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers.comparison import RESULTS
from bench.peers.results import Result
from bench.peers.tables import PAGE
from bench.topics import page
from bench.topics.page import BEGIN, END, render
from tests.bench.test_results import line, rates


def figures(rate: float, p99_ms: float) -> dict[str, dict[str, float]]:
    latency = {"p99 ms": p99_ms, "lowest": p99_ms, "highest": p99_ms}
    return {"publish 1, 100 B": rates(rate), "push p99 ms, 100 B": latency}


RESULT = Result(
    taken_at="2026-01-01T00:00+00:00",
    command="python -m bench.topics",
    machine={"cores": 2},
    peers={
        "Queueber": line(figures(3000, 2.0)),
        "Slow": line(figures(1000, 9.0)),
        "Better": line(figures(2000, 5.0)),
        "Careless": line(figures(9000, 1.0), "no: now and then"),
    },
    limits={},
    left_out={"Absent": "it cannot be fetched"},
)


def test_tables_say_by_how_much_we_lead() -> None:
    shown = render(RESULT)

    assert "| **Queueber** | 3.0 (1.5 to 6.0) | - | - | - | - | - | - | 2.0 |" in shown
    leads = ["1.5x (Better)", *("-" * 6), "2.5x (Better)"]
    assert f"| ahead of the best peer | {' | '.join(leads)} |" in shown
    assert "Not measured: Absent, because it cannot be fetched.\n" in shown


def test_a_run_without_us_is_shown_as_well() -> None:
    peers = {name: each for name, each in RESULT.peers.items() if name != "Queueber"}

    shown = render(replace(RESULT, peers=peers))

    assert "| Slow | 1.0 (0.5 to 2.0) |" in shown
    assert "ahead" not in shown


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
    file = RESULTS / "topics.json"

    assert text.count(BEGIN) == text.count(END) == 1
    if file.is_file():
        assert render(replace(RESULT, **json.loads(file.read_text()))) in text
