"""What the pages below show as output is what their examples print.

Each page has a server of its own, and its examples run in order, as a reader would run them. Ids,
times, durations and sequences differ from run to run and are masked; a line `...` stands for any
lines.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.testing import running_server

ROOT = Path(__file__).parent.parent
PAGES = [
    "README.md",
    "docs/cli.md",
    "docs/security.md",
    "docs/topics.md",
    "docs/workers.md",
    "docs/http.md",
    "docs/http-topics.md",
    "docs/streams-subscriptions.md",
    "docs/streams.md",
    "docs/streams-extensions.md",
]
HTTP = "127.0.0.1:9091"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.M | re.S)
AFTER_COMMAND = "end of the output of a command"

MASKS = {
    r"\bqbr_[0-9a-f]{12}_[\w-]{43}": "TOKEN",
    r"\b[0-9a-f]{12}\b": "ID",
    r"\b\d{16}_\d{16}\b": "OFFSET",
    r"\b[0-9a-f]{32}\b": "ID",
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z": "TIME",
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
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def console_outputs(code: str, address: str, folder: Path) -> Iterator[tuple[str, str, str]]:
    """Each command of a block, what the page shows, and what it prints."""
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.M)
    script = "\n".join(f"{command}\necho '{AFTER_COMMAND}'" for command, _ in commands)
    printed = run(["bash", "-euo", "pipefail", "-c", script], address, folder)
    for (command, shown), output in zip(
        commands, printed.split(f"{AFTER_COMMAND}\n"), strict=False
    ):
        yield command, shown, output


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_examples_print_what_the_page_shows(page: str, tmp_path: Path) -> None:
    http_file = tmp_path / "http-address"
    flags = ("--http", "127.0.0.1:0", "--http-address-file", str(http_file))
    text = (ROOT / page).read_text()
    with running_server(*(flags if HTTP in text else ())) as server:
        if http_file.exists():
            text = text.replace(HTTP, http_file.read_text())
        for language, code, shown in BLOCK.findall(text):
            if language == "console":
                for command, expected, printed in console_outputs(code, server.address, tmp_path):
                    assert agree(expected, printed), f"{command} prints\n{printed}"
            else:
                here = code.replace("127.0.0.1:9090", server.address)
                printed = run([sys.executable, "-c", here], server.address, tmp_path)
                assert agree(shown, printed), f"{code}prints\n{printed}"
