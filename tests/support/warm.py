"""`python` and `queueber` that start in some milliseconds, for tests that start hundreds of them.

Each is a fork of an interpreter that has imported Queueber. Programs get arguments, folder,
environment, standard files and signals as ever, and end with their own code. That a program imports
all it uses is for other tests to show.
"""

import contextlib
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
START_SECONDS_MAX = 60.0

SHIM = """#!{python} -IS
import sys
sys.path.insert(0, {here!r})
from warm_shim import main
main({address!r}, {before!r} + sys.argv[1:])
"""
PACKAGES = ("queueber.cli", "queueber.client", "queueber.jobs", "queueber.worker")
NOT_THESE = ("queueber.cli.spark",)


def beforehand() -> list[str]:
    """Modules that programs use, with all that those import; but no Spark."""
    found = ["pytest"]
    for package in PACKAGES:
        path = importlib.import_module(package).__path__
        found += [each.name for each in pkgutil.walk_packages(path, f"{package}.")]
    return [name for name in found if not name.startswith(NOT_THESE)]


@contextlib.contextmanager
def warm_programs(*modules: str) -> Iterator[Path]:
    """A folder with both programs, to be the first of PATH. The modules are imported, too."""
    with tempfile.TemporaryDirectory(prefix="warm-") as name:
        folder = Path(name)
        address = folder / "socket"
        for program, before in (("python", []), ("queueber", [str(BIN / "queueber")])):
            shim = folder / program
            shim.write_text(
                SHIM.format(
                    python=sys.executable, here=str(HERE), address=str(address), before=before
                )
            )
            shim.chmod(0o755)
        server = subprocess.Popen(
            [sys.executable, HERE / "warm_server.py", address, *beforehand(), *modules],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            give_up_at = time.monotonic() + START_SECONDS_MAX
            while not address.exists():
                assert server.poll() is None
                assert time.monotonic() < give_up_at
                time.sleep(0.01)
            yield folder
        finally:
            server.kill()
            server.wait()
