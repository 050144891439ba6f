"""`make setup`: it says what it does, and a failure of pip is a failure of the script."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.test_architecture import ROOT

PIP = """#!/bin/sh
echo "Collecting click>=8.1 (from queueber==0.1.0)"
echo "  Downloading click-8.3.0-py3-none-any.whl (100 kB)"
echo "Collecting rich"
echo "Installing collected packages: rich, click"
exit {code}
"""


@pytest.mark.parametrize("code", [0, 1])
def test_a_line_is_printed_for_each_package(tmp_path: Path, code: int) -> None:
    shutil.copy(ROOT / "scripts" / "install-packages", tmp_path)
    pip = tmp_path / ".venv" / "bin" / "pip"
    pip.parent.mkdir(parents=True)
    pip.write_text(PIP.format(code=code))
    pip.chmod(0o755)

    ended = subprocess.run(
        ["./install-packages", "dev"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert ended.returncode == code
    assert ended.stdout == "  fetching click\n  fetching rich\n  installing all of them\n"


def test_every_step_of_setup_is_named() -> None:
    planned = subprocess.run(
        ["make", "--dry-run", "--always-make", "setup"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip

    assert all(f'echo "{step}/3 ' in planned for step in (1, 2, 3))
    assert planned.index("2/3") < planned.index("-m venv") < planned.index("install-packages dev")
