"""What the pages below show as output is what their examples print.

Each page has a server of its own, and its examples run in order (`tests/support/examples.py`).
Those that start Spark are in `test_docs_spark.py`.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.sockets import address_of, hold_port
from queueber.testing import running_server
from tests.support.examples import Examples
from tests.support.grpc import wait_listening
from tests.support.warm import warm_programs

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "docs/cli.md",
    "docs/client.md",
    "docs/tutorial.md",
    "docs/how-to/web-app.md",
    "docs/how-to/fastapi.md",
    "docs/how-to/django.md",
    "docs/how-to/sentry.md",
    "docs/how-to/idempotent-handlers.md",
    "docs/how-to/rate-limited-api.md",
    "docs/how-to/from-celery.md",
    "docs/how-to/from-sqs.md",
    "docs/how-to/from-river.md",
    "docs/caps.md",
    "docs/loads.md",
    "docs/schedules.md",
    "docs/security.md",
    "docs/routes.md",
    "docs/topics.md",
    "docs/sql-select.md",
    "docs/workers.md",
    "docs/jobs.md",
    "docs/testing-your-program.md",
    "docs/http.md",
    "docs/http-topics.md",
    "docs/sql.md",
    "docs/kalamdb.md",
    "docs/streams-subscriptions.md",
    "docs/streams.md",
    "docs/streams-extensions.md",
    "docs/grpc.md",
]
HTTP = "127.0.0.1:9091"
"""In examples, the address of a gateway."""
GRPC = "127.0.0.1:50051"


@pytest.fixture(scope="module")
def programs() -> Iterator[Path]:
    with warm_programs() as folder:
        yield folder


def written(file: Path) -> str:
    """The address of the gateway, which the server writes behind its own."""
    give_up_at = time.monotonic() + 30
    while not file.exists() or not (address := file.read_text()):
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    return address


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_the_page_shows(page: str, programs: Path, tmp_path: Path) -> None:
    http_file = tmp_path / "http-address"
    flags: tuple[str, ...] = ("--http", "127.0.0.1:0", "--http-address-file", str(http_file))
    text = (ROOT / page).read_text()
    if GRPC in text:
        with hold_port("127.0.0.1", 0) as held:
            address = address_of(held)
        flags += ("--grpc", address)
        text = text.replace(GRPC, address)
    with running_server(*(flags if HTTP in text else ())) as server:
        if GRPC in (ROOT / page).read_text():
            wait_listening(address)
        if HTTP in text:
            text = text.replace(HTTP, written(http_file))
        Examples(programs, server.address, tmp_path).check_page(text)


@pytest.mark.parametrize(
    ("code", "ended"),
    [
        ("import os, sys; print(sys.argv, os.getcwd(), os.environ['A'])", (0, "['-c', 'x'] / b\n")),
        ("print(input(), flush=True); raise SystemExit(3)", (3, "asked\n")),
        ("import atexit; atexit.register(print, 'last'); raise SystemExit('why')", (1, "last\n")),
        ("import os; os.kill(os.getpid(), 9)", (-9, "")),
        ("import os; os.kill(os.getppid(), 0); 1 / 0", (1, "")),
    ],
)
def test_a_warm_program_ends_as_one_that_was_started(
    code: str, ended: tuple[int, str], programs: Path
) -> None:
    ran = [
        subprocess.run(
            [program, "-c", code, "x"],
            cwd="/",
            env={"A": "b"},
            input="asked\n",
            capture_output=True,
            text=True,
            check=False,
        )
        for program in (programs / "python", sys.executable)
    ]

    assert [(each.returncode, each.stdout) for each in ran] == [ended, ended]
    assert ran[0].stderr == ran[1].stderr


def test_a_warm_program_gets_signals(programs: Path) -> None:
    code = "import signal, sys; signal.signal(15, lambda *_: sys.exit(7)); print(flush=True); "
    with subprocess.Popen(
        [programs / "python", "-c", code + "signal.pause()"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.terminate()

    assert process.returncode == 7
