"""The public suite of HTTP/2 passes against the gRPC port."""

import shutil
import subprocess
import sys

import pytest


@pytest.mark.long
@pytest.mark.skipif(shutil.which("go") is None, reason="Go builds the suite")
def test_every_test_of_h2spec_passes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "conformance.http2"],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert ", 0 skipped, 0 failed" in done.stdout
