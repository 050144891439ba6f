"""Start a server with its gateway, run the suite against it, and print what passed.

The exit code is 0 only if every test of the suite passed: none failed, and none was skipped.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from conformance.results import Results, read_results
from queueber.testing import running_server

HERE = Path(__file__).parent
_LONG_POLL_MS = 500
"""Two tests wait for the end of a long poll, for less than 5 seconds."""
_START_SECONDS_MAX = 30.0
_SUITE_SECONDS_MAX = 600.0


@click.command()
@click.option("--only", default="", help="Only tests whose names have this text.")
@click.option("--url", default="", help="Run it against this server instead of a new one.")
@click.option("--report", type=click.Path(path_type=Path), help="Keep the report of vitest here.")
def main(only: str, url: str, report: Path | None) -> None:
    """Run the conformance suite of Durable Streams."""
    if not (HERE / "node_modules").is_dir():
        raise click.ClickException("the suite is not installed; run: make conformance")
    with tempfile.TemporaryDirectory(prefix="queueber-") as folder:
        report = report or Path(folder) / "report.json"
        if url:
            _run_suite(url, report, only)
        else:
            address_file = Path(folder) / "address"
            os.environ["QUEUEBER_GATEWAY_STREAM_WAIT_MS"] = str(_LONG_POLL_MS)
            options = ("--http", "127.0.0.1:0", "--http-address-file", str(address_file))
            with running_server(*options) as server:
                _run_suite(f"http://{_address(address_file)}", report, only)
                for line in server.log_file.read_text().splitlines():
                    if '"level": "error"' in line:
                        click.echo(line)
        results = read_results(json.loads(report.read_text()))
    click.echo(_shown(results))
    is_whole = results.passed and not results.failed and not results.skipped
    sys.exit(0 if is_whole or (only and not results.failed) else 1)


def _address(file: Path) -> str:
    give_up_at = time.monotonic() + _START_SECONDS_MAX
    while not (file.is_file() and file.read_text()):
        if time.monotonic() > give_up_at:
            raise click.ClickException("the gateway did not start")
        time.sleep(0.02)
    return file.read_text()


def _run_suite(url: str, report: Path, only: str) -> None:
    npx = shutil.which("npx")
    if npx is None:
        raise click.ClickException("npx is not installed; install node 20 or later")
    command: Sequence[str] = (
        npx, "vitest", "run", "streams.test.mjs", "--reporter=json", f"--outputFile={report}",
        *(("-t", only) if only else ()),
    )  # fmt: skip
    environment: dict[str, Any] = {**os.environ, "STREAMS_URL": url}
    ended = subprocess.run(
        command, cwd=HERE, env=environment, capture_output=True, text=True, check=False,
        timeout=_SUITE_SECONDS_MAX,
    )  # fmt: skip
    if not report.is_file():
        raise click.ClickException(f"the suite did not run:\n{ended.stdout}{ended.stderr}")


def _shown(results: Results) -> str:
    lines = [f"FAILED {each.name}\n    {each.reason}" for each in results.failures]
    lines.append(
        f"{results.passed} passed, {results.failed} failed, {results.skipped} skipped "
        f"in {results.seconds:.0f} s"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
