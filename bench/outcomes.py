"""The cost of outcomes and features: complete against remove, items with keys, batches etc."""

import os
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path

from bench.engine import EngineQueue, engine_queue, run_group
from bench.measure import Rate, Round, Shape, bench_parser, progress, rate_of, scratch, start_report
from queueber.model import NewItems

_DESCRIPTION = """Measure outcomes in the engine with group commit: remove, and complete with a
result of as many bytes as the contents, in turn on the same store. Then add, poll and complete
items that use a feature, as a fraction of the rate of plain ones."""

_SHAPE = Shape(100, 100)
_TARGET = 0.8
_numbers = count()

Feature = Callable[[list[bytes]], NewItems]

FEATURES: dict[str, Feature] = {
    "plain": NewItems,
    "priority": lambda contents: NewItems(contents, priorities=[7] * len(contents)),
    "key": lambda contents: NewItems(contents, keys=[str(next(_numbers)) for _ in contents]),
    "attributes": lambda contents: NewItems(
        contents, attributes=[{"traceparent": "00-4bf92f3577b34da6-00f067aa0ba902b7-01"}] * 100
    ),
    "batch": lambda contents: NewItems(contents, batch="fan-out"),
}


def run_outcomes(folder: Path, calls: int) -> dict[str, Round]:
    """Remove and complete in turn, ten calls each, so that both run on the same store."""
    with tempfile.TemporaryDirectory(dir=folder) as path, engine_queue(Path(path)) as queue:
        contents = _SHAPE.contents()
        results = [os.urandom(_SHAPE.content_bytes) for _ in range(_SHAPE.items)]
        rounds: dict[str, list[Round]] = {"remove": [], "complete": []}
        for _ in range(calls // 10):
            for name, call in (
                ("remove", queue.remove),
                ("complete", lambda: queue.complete(results)),
            ):
                for _ in range(10):
                    queue.add(contents)
                    queue.poll(_SHAPE.items)
                rounds[name].append(_group(queue, call))
        return {name: _joined(of_name) for name, of_name in rounds.items()}


def run_feature(folder: Path, feature: Feature, calls: int) -> dict[str, Round]:
    with tempfile.TemporaryDirectory(dir=folder) as path, engine_queue(Path(path)) as queue:
        contents = _SHAPE.contents()
        left = iter(range(calls))

        def add_next() -> int:
            return 0 if next(left, None) is None else queue.add_items(feature(contents))

        add = _group(queue, add_next)
        poll = _group(queue, lambda: queue.poll(_SHAPE.items))
        complete = _group(queue, lambda: queue.complete(contents))
        return {"add": add, "poll": poll, "complete": complete}


def _group(queue: EngineQueue, call: Callable[[], int]) -> Round:
    return run_group(call, queue.engine.store.sync, seconds=60, window=8)


def _joined(rounds: list[Round]) -> Round:
    return Round(
        sum(each.items for each in rounds),
        sum(each.elapsed_ns for each in rounds),
        [ns for each in rounds for ns in each.calls_ns],
    )


def main() -> None:
    parser = bench_parser(_DESCRIPTION)
    parser.add_argument("--calls", type=int, default=300, help="calls of 100 items in a round")
    parser.add_argument("--repeat", type=int, default=5, help="rounds of each kind")
    arguments = parser.parse_args()
    outcomes: list[dict[str, Round]] = []
    features: dict[str, list[dict[str, Round]]] = {name: [] for name in FEATURES}
    with scratch(arguments.dir) as folder, progress() as bar:
        report = start_report("Outcomes and features, no RPC", arguments, folder)
        for _ in bar.track(range(arguments.repeat), description="outcomes"):
            outcomes.append(run_outcomes(folder, arguments.calls))
            for name, feature in FEATURES.items():
                features[name].append(run_feature(folder, feature, arguments.calls))

    rates = {name: rate_of([each[name] for each in outcomes]) for name in ("remove", "complete")}
    report.table("Outcomes", [{"call": name, **rate.shown()} for name, rate in rates.items()])
    ratio = rates["complete"].items_per_second / rates["remove"].items_per_second
    report.verdict(
        f"complete with a result at 100 items a call runs at {ratio:.2f} of remove, "
        f"{_TARGET} or more",
        is_met=ratio >= _TARGET,
    )
    report.table("Features", _feature_rows(features))
    report.write_json(arguments.json)


def _feature_rows(features: dict[str, list[dict[str, Round]]]) -> list[dict[str, object]]:
    rates: dict[str, dict[str, Rate]] = {
        name: {call: rate_of([each[call] for each in rounds]) for call in rounds[0]}
        for name, rounds in features.items()
    }
    plain = rates["plain"]
    return [
        {
            "items with": name,
            **{f"{call} items/s": round(rate.items_per_second) for call, rate in of_name.items()},
            **{
                f"{call} of plain": rate.items_per_second / plain[call].items_per_second
                for call, rate in of_name.items()
            },
        }
        for name, of_name in rates.items()
    ]


if __name__ == "__main__":
    main()
