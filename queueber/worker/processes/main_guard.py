"""A script that starts worker processes must start them under `if __name__ == "__main__":`.

Each new process imports the script. Without the guard that import would run the worker again, in
every process. The process notices it and exits with a code that the supervisor knows.
"""

import os
import sys
from multiprocessing import process

PROCESS_NAME = "queueber-worker-"
EXIT_CODE = 79

_ADVICE = (
    "a worker process imports the script that starts it, and the script starts the worker again; "
    """put the start under 'if __name__ == "__main__":'"""
)
MISSING_MAIN_GUARD = f"processes: {_ADVICE}"


def check_main_guard() -> None:
    """Refuse to run a worker while a new process imports the script of its parent."""
    current = process.current_process()
    if not getattr(current, "_inheriting", False):
        return
    if current.name.startswith(PROCESS_NAME):
        sys.stdout.flush()
        sys.stderr.flush()
        # Not `sys.exit`: the script may have threads or handlers that would keep it alive.
        os._exit(EXIT_CODE)
    raise RuntimeError(_ADVICE)
