"""What the pages below show as output is what their examples print.

Each page has a server of its own, and its examples run in order, as a reader would run them. Ids,
times, durations and sequences differ from run to run and are masked; a line `...` stands for any
lines. An example with a title, such as `title="mails.py"`, is written to a file of that name.
"""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.sockets import address_of, hold_port
from queueber.testing import running_server
from tests.support.grpc import wait_listening

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "docs/cli.md",
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
    "docs/loads.md",
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
BLOCK = re.compile(
    r"^```(console|python)(?: title=\"([\w./]+)\")?\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?",
    re.M | re.S,
)
"""An example. One with a title is a file that the reader writes, for the examples below it."""
WORKER_LINE = re.compile(
    r"\[(info|warning) *\] (worker_(connecting|started|ended)|handler_failed|handlers_stuck) "
)
TRACEBACK = re.compile(r"handler_failed .*\n(?:(?!\d{4}-).*\n?)*")
"""A failure, and the lines below it that do not begin with a time: its traceback."""
AFTER_COMMAND = "end of the output of a command"

MASKS = {
    r"\bqbr_[0-9a-f]{12}_[\w-]{43}": "TOKEN",
    r"\b[0-9a-f]{12}\b": "ID",
    r"\b\d{16}_\d{16}\b": "OFFSET",
    r"\b[0-9a-f]{32}\b": "ID",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z": "TIME",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[+-]\d\d:\d\d": "MOMENT",
    r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ": "NAME",
    r"\b\d{13}\b": "MS",
    r'"sequence": \d+': "SEQUENCE",
    r"\b[0-9a-f]{64}\b": "DIGEST",
    r"\b\d+\.\d+\b": "SECONDS",
    r"for \d+ s": "for SECONDS",
    r"[ \t]+": " ",
}


def masked(text: str) -> list[str]:
    for pattern, mask in MASKS.items():
        text = re.sub(pattern, mask, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def agree(shown: str, printed: str) -> bool:
    """Whether they are equal; what a line `...` stands for may be anything."""
    parts = [re.escape(line) if line != "..." else "(.|\n)*" for line in masked(shown)]
    return re.fullmatch("\n".join(parts), "\n".join(masked(printed))) is not None


def run(command: list[str], address: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "QUEUEBER_ADDRESS": address,
    }
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ended.returncode, beside_workers(ended.stderr)) == (0, []), ended.stderr
    return ended.stdout


def beside_workers(stderr: str) -> list[str]:
    """The lines without what a worker logs of itself in a program that has set up no log."""
    lines = TRACEBACK.sub("handler_failed \n", stderr).splitlines()
    return [line for line in lines if not WORKER_LINE.search(line)]


def console_outputs(code: str, address: str, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each command of a block, what the page shows, and what it prints."""
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.M)
    script = "\n".join(f"{command}\necho '{AFTER_COMMAND}'" for command, _ in commands)
    printed = run(["bash", "-euo", "pipefail", "-c", script], address, folder)
    for (command, shown), output in zip(
        commands, printed.split(f"{AFTER_COMMAND}\n"), strict=False
    ):
        yield command, shown, output


def written(file: Path) -> str:
    """The address of the gateway, which the server writes behind its own."""
    give_up_at = time.monotonic() + 30
    while not file.exists() or not (address := file.read_text()):
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    return address


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
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
        for language, file, code, shown in BLOCK.findall(text):
            here = code.replace("127.0.0.1:9090", server.address)
            if file:
                (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / file).write_text(here)
            elif language == "console":
                for command, expected, printed in console_outputs(code, server.address, tmp_path):
                    assert agree(expected, printed), f"{command} prints\n{printed}"
            else:
                printed = run([sys.executable, "-c", here], server.address, tmp_path)
                assert agree(shown, printed), f"{code}prints\n{printed}"
