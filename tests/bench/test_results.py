"""The comparison's result: who is best, how it is shown, and that the docs show the newest."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.peers import page
from bench.peers.page import render
from bench.peers.results import AS_BEFORE, NOW, Result
from bench.peers.tables import PAGE

ROOT = Path(__file__).parents[2]


def line(figures: dict[str, dict[str, float]], synced: str = "yes") -> dict[str, object]:
    return {"version": "1", "client": "c 1", "synced": synced, "notes": "", "figures": figures}


def rates(middle: float) -> dict[str, float]:
    return {"items/s": middle, "lowest": middle / 2, "highest": middle * 2}


RESULT = Result(
    taken_at="2026-01-01T00:00+00:00",
    command="python -m bench.peers",
    machine={"cores": 2},
    peers={
        "Queueber": line({"add 1, 100 B": rates(3000), "deep": {"waiting p99 ms": 2.0}}),
        "Slow": line({"add 1, 100 B": rates(1000), "deep": {"waiting p99 ms": 1.0}}),
        "Better": line({"add 1, 100 B": rates(2000)}),
        "Careless": line({"add 1, 100 B": rates(9000)}, "no: now and then"),
    },
    limits={AS_BEFORE: {"add 1, 100 B": rates(6000)}, NOW: {"add 1, 100 B": rates(12000)}},
    left_out={"Absent": "it cannot be built"},
)


def test_best_peer_is_one_that_syncs_and_is_not_us() -> None:
    assert RESULT.best_peer("add 1, 100 B", "items/s") == ("Better", 2000)
    assert RESULT.best_peer("add 1, 100 B", "items/s", least=True) == ("Slow", 1000)
    assert RESULT.best_peer("add 1, 1024 B", "items/s") is None


def test_tables_say_by_how_much_we_lead_and_what_share_of_each_limit_we_reach() -> None:
    shown = render(RESULT)

    assert "| **Queueber** | 3.0 (1.5 to 6.0) | - | - | - | - |" in shown
    assert "| ahead of the best peer | 1.5x (Better) | - | - | - | - |" in shown
    assert (
        "| RocksDB alone, an entry an item (as before) | 6.0 | - | - | - | - |\n"
        "| our share of that | 50% | - | - | - | - |\n"
        "| RocksDB alone, what is written now | 12.0 | - | - | - | - |\n"
        "| our share of that | 25% | - | - | - | - |\n"
    ) in shown
    assert "| **Queueber** | - | 2.0 | - | - | - | - |" in shown


def test_peers_that_could_not_be_measured_are_named() -> None:
    assert "Not measured: Absent, because it cannot be built.\n" in render(RESULT)
    assert "Not measured" not in render(replace(RESULT, left_out={}))


def test_page_is_changed_between_its_marks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "performance.md"
    written.write_text(f"before\n{page.BEGIN}old\n{page.END}after\n")
    monkeypatch.setattr(page, "PAGE", written)
    monkeypatch.setattr(page, "plot", lambda result, file: None)

    page.write_page(RESULT)

    assert written.read_text() == f"before\n{page.BEGIN}{render(RESULT)}{page.END}after\n"


def test_docs_hold_the_newest_result() -> None:
    newest = json.loads((ROOT / "bench" / "results" / "peers.json").read_text())

    assert render(replace(RESULT, **newest)) in PAGE.read_text()
    assert page.PLOT.is_file()
