"""The demo, with fewer documents than people see."""

import subprocess
import sys
from pathlib import Path

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
