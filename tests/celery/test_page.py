"""The project of docs/celery.md, with a worker."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from queueber.testing import ServerProcess
from tests.celery.conftest import ROOT, a_worker, end

EXAMPLE = re.compile(r"^```py\n(.*?)^```$.*?^```text\n(.*?)^```$", re.M | re.S)


@pytest.mark.slow
def test_project_of_the_page_prints_what_the_page_says(
    server: ServerProcess, tmp_path: Path
) -> None:
    [(code, output)] = EXAMPLE.findall((ROOT / "docs" / "celery.md").read_text())
    (tmp_path / "shop.py").write_text(code.replace("127.0.0.1:9090", server.address))

    with a_worker(server, tmp_path / "log", "-c", "2", project="shop", folder=tmp_path) as worker:
        ran = subprocess.run(
            [sys.executable, "shop.py"],
            cwd=tmp_path,
            env=os.environ,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert end(worker, signal.SIGTERM) == 0

    assert (ran.stdout, ran.stderr) == (output, "")
