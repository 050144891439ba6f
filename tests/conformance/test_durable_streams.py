"""The public conformance suite of Durable Streams passes whole; see `make conformance`."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.results import Failure, Results, read_results

ROOT = Path(__file__).parent.parent.parent
INSTALLED = ROOT / "conformance" / "node_modules"
TESTS = 338


@pytest.mark.slow
@pytest.mark.skipif(
    not INSTALLED.is_dir() or shutil.which("npx") is None,
    reason="the suite is not installed: run make conformance",
)
def test_every_test_of_the_suite_passes(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "conformance"], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=280, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip

    assert ended.returncode == 0, ended.stdout[-5000:] + ended.stderr[-2000:]
    assert f"{TESTS} passed, 0 failed, 0 skipped" in ended.stdout


def test_versions_are_pinned_and_no_registry_is_named() -> None:
    package = json.loads((ROOT / "conformance" / "package.json").read_text())

    versions = package["dependencies"]
    assert versions["@durable-streams/server-conformance-tests"] == "0.3.6"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values())
    listed = subprocess.run(
        ["git", "ls-files", "conformance"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout
    assert "lock" not in listed


def test_a_report_counts_every_test_and_says_what_failed() -> None:
    def test(name: str, status: str, *messages: str) -> dict[str, object]:
        return {"fullName": name, "status": status, "failureMessages": list(messages)}

    report = {
        "startTime": 1000,
        "testResults": [
            {
                "name": "streams.test.mjs",
                "status": "failed",
                "message": "",
                "endTime": 3500,
                "assertionResults": [
                    test("a", "passed"),
                    test("b", "failed", "expected 404\n    at line 7"),
                    test("c", "pending"),
                ],
            },
            {
                "name": "other.test.mjs",
                "status": "failed",
                "message": "cannot be read",
                "endTime": 2000,
                "assertionResults": [],
            },
        ],
    }

    found = read_results(report)

    failures = (Failure("b", "expected 404"), Failure("other.test.mjs", "cannot be read"))
    assert found == Results(passed=1, skipped=1, seconds=2.5, failures=failures)
