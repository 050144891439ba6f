"""Calls among many waiting items: each is measured with few and with many."""

from pathlib import Path

from bench.among_many import measure_among_many


def test_every_call_is_measured_with_few_and_with_many(tmp_path: Path) -> None:
    rows = measure_among_many(tmp_path, items=3000, calls=40)

    assert [(row["call"], row["waiting"], row["calls"], row["items"]) for row in rows] == [
        (call, waiting, calls if call != "read a page of it" else waiting // 250, items)
        for call, calls, items in (
            ("peek at the first", 40, 100),
            ("peek at any", 40, 100),
            ("take a snapshot", 40, 1),
            ("split it", 40, 1),
            ("read a page of it", 0, 250),
            ("cancel any", 40, 1),
            ("cancel every second", 20, 1),
            ("cancel the others", 20, 1),
            ("poll afterwards", 40, 10),
        )
        for waiting in (1000, 3000)
    ]
