"""The demo, with fewer documents than people see."""

import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.spark_driver import ROOT, spark_environment


def test_demo_accounts_for_every_document(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "examples.demo", "--documents", "5000"],
        cwd=ROOT,
        env=spark_environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "killed a worker" in ended.stdout
    assert "killed the server" in ended.stdout
    assert "every one is accounted for" in ended.stdout
    assert "see it live at http://127.0.0.1:" in ended.stdout


@pytest.mark.long
def test_demo_stays_up_if_asked(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "examples.demo", "--documents", "2000", "--keep"],
        cwd=ROOT,
        env=spark_environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        page = ""
        for line in process.stdout:
            if found := re.search(r"the dashboard stays at (\S+);", line):
                page = found[1]
                break
        with urllib.request.urlopen(page, timeout=30) as answer:
            assert b"Queueber" in answer.read()
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    assert (process.returncode, rest.splitlines()[-1]) == (0, "the server stops")
