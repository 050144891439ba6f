"""The blocking classes are generated from the awaited ones."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "scripts" / "generate_blocking.py"
API = SCRIPT.parents[1] / "queueber" / "client" / "api"


def test_the_generated_files_are_current() -> None:
    checked = subprocess.run(
        [sys.executable, str(SCRIPT), "--check"], capture_output=True, text=True, check=False
    )

    assert (checked.returncode, checked.stdout) == (0, ""), "run scripts/generate_blocking.py"


def test_every_generated_file_says_what_it_is_generated_from() -> None:
    for source in API.glob("async_*.py"):
        generated = source.with_name(source.name.removeprefix("async_"))
        first_line = generated.read_text().partition("\n")[0]

        assert first_line.startswith(f"# Generated from {source.name} by scripts/")
