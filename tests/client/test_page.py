"""What `docs/client.md` shows as the output of an example is what the example prints."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.testing import ServerProcess, running_server
from tests.test_docs_output import WORKER_LINE

PAGE = Path(__file__).parents[2] / "docs" / "client.md"
SHOWN = re.findall(
    r"^```python\n((?:(?!```)[^\n]*\n)*)```\n\n```text\n(.*?)^```$",
    PAGE.read_text(),
    re.MULTILINE | re.DOTALL,
)


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    """One without queues of other tests."""
    with running_server() as running:
        yield running


@pytest.mark.parametrize(("code", "output"), SHOWN, ids=range(len(SHOWN)))
def test_an_example_prints_what_the_page_shows(
    server: ServerProcess, code: str, output: str
) -> None:
    here = code.replace("127.0.0.1:9090", server.address)

    ran = subprocess.run([sys.executable, "-c", here], capture_output=True, text=True, check=True)

    told = [line for line in ran.stderr.splitlines() if not WORKER_LINE.search(line)]
    assert (ran.stdout, told) == (output, [])
