"""Without the packages of the extra `sql`: statements run, and queries say what is missing."""

import subprocess
import sys

import pytest

from queueber.testing import ServerProcess

_PROGRAM = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("duckdb", "pyarrow", "prompt_toolkit", "sqlglot"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import queueber
from queueber.cli import program

with queueber.connect(sys.argv[1]) as client:
    print(client.sql("SHOW TABLES LIKE 'system.topics'").rows)
    try:
        client.sql("SELECT 1")
    except queueber.FailedPrecondition as error:
        print(error)
sys.stdin.isatty = lambda: True
program(["sql", "--address", sys.argv[1]])
"""


@pytest.mark.slow
def test_statements_need_no_further_package(server: ServerProcess) -> None:
    command = [sys.executable, "-c", _PROGRAM, server.address]

    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert ended.stdout.splitlines() == [
        "[('system.topics',)]",
        "pyarrow is not installed, and SELECT needs it: pip install 'queueber[sql]'",
    ]
    assert ended.returncode == 2
    assert "prompt_toolkit is not installed; install it with: pip install 'queueber[sql]'" in (
        ended.stderr
    )
