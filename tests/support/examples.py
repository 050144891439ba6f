"""The examples of a page: run in order, as a reader would run them, and compared with the page.

Ids, times, durations and sequences differ from run to run and are masked; a line `...` stands for
any lines. An example with a title, such as `title="mails.py"`, is written to a file of that name.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
BLOCK = re.compile(
    r"^```(console|python)(?: title=\"([\w./]+)\")?\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?",
    re.M | re.S,
)
"""An example. One with a title is a file that the reader writes, for the examples below it."""
ADDRESS = "127.0.0.1:9090"
"""In examples, the address of the server."""
WORKER_LINE = re.compile(
    r"\[(info|warning) *\] (worker_(connecting|started|ended)|handler_failed|handlers_stuck) "
)
TRACEBACK = re.compile(r"handler_failed .*\n(?:(?!\d{4}-).*\n?)*")
"""A failure, and the lines below it that do not begin with a time: its traceback."""
AFTER_COMMAND = "end of the output of a command"

MASKS = {
    r"\bqbr_[0-9a-f]{12}_[\w-]{43}": "TOKEN",
    r"\benqueue-\d{8}-\d{6}-[0-9a-f]{6}\b": "NAME",
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

PLUGINS_OF_EXAMPLES = ("queueber", "trio", "anyio")


def without_plugins() -> str:
    """Flags for pytest: no plugins that examples do not use, as they are slow to import."""
    names = {each.name for each in entry_points(group="pytest11")} - {*PLUGINS_OF_EXAMPLES}
    return " ".join(f"-p no:{name}" for name in sorted(names))


def masked(text: str) -> list[str]:
    for pattern, mask in MASKS.items():
        text = re.sub(pattern, mask, text)
    return [line.strip() for line in text.splitlines() if line.strip()]


def agree(shown: str, printed: str) -> bool:
    """Whether they are equal; what a line `...` stands for may be anything."""
    parts = [re.escape(line) if line != "..." else "(.|\n)*" for line in masked(shown)]
    return re.fullmatch("\n".join(parts), "\n".join(masked(printed))) is not None


def beside_workers(stderr: str) -> list[str]:
    """The lines without what a worker logs of itself in a program that has set up no log."""
    lines = TRACEBACK.sub("handler_failed \n", stderr).splitlines()
    return [line for line in lines if not WORKER_LINE.search(line)]


@dataclass(frozen=True)
class Examples:
    """Runs examples against a server, in a folder, with the programs of `warm_programs`."""

    programs: Path
    address: str
    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    after_each: Callable[[], None] = lambda: None
    seconds_max: float = 60.0
    """Of one example, on a machine that is busy."""

    def check_page(self, text: str) -> None:
        """Every example prints what the page shows below it."""
        for language, file, code, shown in BLOCK.findall(text):
            here = code.replace(ADDRESS, self.address)
            if file:
                (self.folder / file).parent.mkdir(parents=True, exist_ok=True)
                (self.folder / file).write_text(here)
            elif language == "console":
                for command, expected, printed in self._outputs(code):
                    assert agree(expected, printed), f"{command} prints\n{printed}"
            else:
                printed = self.python(here)
                assert agree(shown, printed), f"{code}prints\n{printed}"

    def python(self, code: str) -> str:
        return self._run([str(self.programs / "python"), "-c", code])

    def shell(self, script: str) -> str:
        return self._run(["bash", "-euo", "pipefail", "-c", script])

    def _outputs(self, code: str) -> Iterator[tuple[str, str, str]]:
        """Each command of a block, what the page shows, and what it prints."""
        commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", code, re.M)
        script = "\n".join(f"{command}\necho '{AFTER_COMMAND}'" for command, _ in commands)
        outputs = self.shell(script).split(f"{AFTER_COMMAND}\n")
        for (command, shown), output in zip(commands, outputs, strict=False):
            yield command, shown, output

    def _run(self, command: list[str]) -> str:
        path = (str(self.programs), str(Path(sys.executable).parent), os.environ["PATH"])
        environment = {
            **self.environment,
            "PATH": os.pathsep.join(path),
            "PYTHONPATH": str(ROOT),
            "PYTEST_ADDOPTS": without_plugins(),
            "QUEUEBER_ADDRESS": self.address,
        }
        ended = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=self.seconds_max,
            check=False,
        )
        self.after_each()
        assert (ended.returncode, beside_workers(ended.stderr)) == (0, []), ended.stderr[-4000:]
        return ended.stdout
