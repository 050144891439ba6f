"""The report of vitest as numbers, and what failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_REASON_CHARS = 300


@dataclass(frozen=True, slots=True)
class Failure:
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Results:
    passed: int
    skipped: int
    seconds: float
    failures: tuple[Failure, ...]

    @property
    def failed(self) -> int:
        return len(self.failures)


def read_results(report: Mapping[str, Any]) -> Results:
    """Every test of the report, and files that could not be run at all."""
    tests = [test for file in report["testResults"] for test in file["assertionResults"]]
    failures = [
        Failure(test["fullName"], _line(" ".join(test["failureMessages"])))
        for test in tests
        if test["status"] == "failed"
    ]
    failures += [
        Failure(file["name"], _line(file["message"]))
        for file in report["testResults"]
        if file["status"] == "failed" and not file["assertionResults"]
    ]
    ends = [file["endTime"] for file in report["testResults"]]
    passed = sum(test["status"] == "passed" for test in tests)
    return Results(
        passed,
        len(tests) - passed - sum(test["status"] == "failed" for test in tests),
        (max(ends, default=report["startTime"]) - report["startTime"]) / 1000,
        tuple(failures),
    )


def _line(text: str) -> str:
    return text.partition("\n")[0][:_REASON_CHARS]
