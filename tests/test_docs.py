"""Every example of the documentation is run, and its tables are those of the code.

Blocks marked `python` and `console` are run against a server; `127.0.0.1:9090` stands for its
address. Blocks marked `sh` start servers or build things: their commands are checked to exist.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from queueber.config import OPTIONS
from queueber.db.families import Family
from queueber.engine.lifecycle import INVARIANTS, TRANSITIONS
from queueber.errors import WIRE_ERRORS
from queueber.testing import ServerProcess, running_server

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

WORKER_LINE = re.compile(r"\[(info|warning) *\] (worker_(started|ended)|handler_failed) ")
"""What a worker logs of itself on the standard error of a program that has set up no log."""


def blocks(language: str) -> list[object]:
    found: list[object] = []
    for page in PAGES:
        codes = [code for name, code in BLOCK.findall(page.read_text()) if name == language]
        found += [pytest.param(code, id=f"{page.name}-{at}") for at, code in enumerate(codes)]
    return found


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with running_server() as running:
        yield running


def run(command: list[str], server: ServerProcess) -> "subprocess.CompletedProcess[str]":
    bin_folder = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "QUEUEBER_ADDRESS": server.address,
    }
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("code", blocks("python"))
def test_python_example_runs(code: str, server: ServerProcess) -> None:
    ended = run([sys.executable, "-c", code.replace("127.0.0.1:9090", server.address)], server)

    told = [line for line in ended.stderr.splitlines() if not WORKER_LINE.search(line)]
    assert (ended.returncode, told) == (0, [])


@pytest.mark.parametrize("code", blocks("console"))
def test_console_example_runs(code: str, server: ServerProcess) -> None:
    lines = [line.removeprefix("$ ") for line in code.splitlines() if line.startswith("$ ")]
    assert lines

    ended = run(["bash", "-euo", "pipefail", "-c", "\n".join(lines)], server)

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("code", blocks("sh"))
def test_shell_example_names_commands_that_exist(code: str, server: ServerProcess) -> None:
    for line in code.splitlines():
        command, *arguments = line.split("#")[0].split()
        if command == ".":
            assert arguments == [".venv/bin/activate"], line
            continue
        if command == "make":
            asked = ["make", "--dry-run", *arguments]
        else:
            assert Path(command).name == "queueber", line
            flags = [argument for argument in arguments[1:] if argument.startswith("--")]
            told = run(["queueber", arguments[0], "--help"], server).stdout
            assert all(flag in told for flag in flags), line
            continue
        assert run(asked, server).returncode == 0, line


def test_pages_that_are_linked_exist() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).is_file(), f"{page.name} links {target}"


def rows(page: str) -> list[list[str]]:
    lines = (ROOT / "docs" / page).read_text().splitlines()
    return [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]


def test_the_families_are_those_of_the_code() -> None:
    listed = [row for row in rows("architecture.md") if len(row) == 3 and row[0] != "family"]

    expected = [[family.family_name, family.key_parts, family.value_kind] for family in Family]
    assert [row for row in listed if row[0] != "---"] == expected


def test_the_states_and_invariants_are_those_of_the_code() -> None:
    listed = rows("lifecycle.md")

    for (state, operation), target in TRANSITIONS.items():
        assert [state.value, operation, target.value] in listed
    assert {row[0]: row[1] for row in listed if row[0].startswith("I")} == INVARIANTS


def test_the_options_are_those_of_the_code() -> None:
    listed = {row[0]: row[1:] for row in rows("operations.md") if len(row) == 3}

    for option in OPTIONS:
        default = "" if option.default is None else str(option.default)
        assert listed[option.name] == [default, option.help]


def test_every_error_code_is_told() -> None:
    for page in ("client.md", "protocol.md"):
        text = (ROOT / "docs" / page).read_text()
        assert all(f"`{code}`" in text for code in WIRE_ERRORS), page


def test_the_exit_codes_are_those_of_the_command() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "queueber", "--help"], capture_output=True, text=True, check=True
    ).stdout
    page = (ROOT / "docs" / "cli.md").read_text()

    for code, meaning in re.findall(r"^    (\d+) +(.*)$", told, re.MULTILINE):
        if code != "130":
            assert f"| {code} | {meaning} |" in page
