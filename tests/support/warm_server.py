"""An interpreter that has imported much already: every program that it runs is a fork of it.

A fork is as good as a new process, but has no half a second of imports before it.
"""

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import IO, Any

STANDARD_FILES = 3


def serve(listener: socket.socket) -> Callable[[], None]:
    """Forks for every request; returns in a fork only, with what that is to run."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who answer requests
    while True:
        asking, _ = listener.accept()
        if os.fork():
            asking.close()
            continue
        listener.close()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        length, files, _, _ = socket.recv_fds(asking, 4, STANDARD_FILES)
        with asking.makefile("rb") as rest:
            program, folder, environment = marshal.loads(rest.read(int.from_bytes(length, "big")))
        process = os.fork()
        if process:
            _watch(asking, process, files)
        asking.close()
        return _prepared(program, folder, environment, files)


def _watch(asking: socket.socket, process: int, files: list[int]) -> None:
    """Pass signals on, and tell how the process has ended."""
    for fd in (*files, 0, 1, 2):
        os.close(fd)
    ended = os.pidfd_open(process)
    while ended not in (ready := select.select([asking.fileno(), ended], [], [])[0]):
        if asking.fileno() in ready:
            # Whoever asked is gone if there is nothing.
            number = asking.recv(1)
            os.kill(process, number[0] if number else signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    with contextlib.suppress(OSError):
        asking.sendall(code.to_bytes(4, "big", signed=True))
    os._exit(0)


def _prepared(
    program: list[str], folder: str, environment: dict[bytes, bytes], files: list[int]
) -> Callable[[], None]:
    for number, fd in enumerate(files):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(folder)
    os.environb.clear()
    os.environb.update(environment)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        setattr(sys, name, _standard(name, mode))
        setattr(sys, f"__{name}__", getattr(sys, name))
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path.insert(0, folder)
        return lambda: _run_module(program[1])
    if program[0] == "-c":
        sys.argv = ["-c", *program[2:]]
        sys.path.insert(0, "")
        return lambda: _run_code(program[1], "<string>")
    sys.argv = program
    sys.path.insert(0, os.path.dirname(os.path.abspath(program[0])))
    return lambda: _run_file(program[0])


def _standard(name: str, mode: str) -> IO[Any]:
    number = ("stdin", "stdout", "stderr").index(name)
    errors = "backslashreplace" if name == "stderr" else "strict"
    buffering = 1 if name == "stderr" or os.isatty(number) else -1
    return open(number, mode, buffering, errors=errors, closefd=False)


def _run_module(name: str) -> None:
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def _run_file(path: str) -> None:
    with open(path, "rb") as file:
        _run_code(file.read(), path)


def _run_code(code: str | bytes, path: str) -> None:
    main = ModuleType("__main__")
    if path != "<string>":
        main.__file__ = path
    sys.modules["__main__"] = main
    exec(compile(code, path, "exec", dont_inherit=True), main.__dict__)


def main(path: str, *beforehand: str) -> None:
    sys.path.pop(0)  # the folder of this file
    for name in beforehand:
        importlib.import_module(name)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{path}.new")
    listener.listen(16)
    os.rename(f"{path}.new", path)
    gc.freeze()
    _end(_code_of(serve(listener)))


def _code_of(run: Callable[[], None]) -> int:
    try:
        run()
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        sys.stderr.write(f"{ended.code}\n")
        return 1
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException as error:  # noqa: BLE001  it is told as the interpreter tells it
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return 1
    return 0


def _end(code: int) -> None:
    """As the interpreter does, but for taking apart all modules, which nobody misses."""
    threading._shutdown()  # type: ignore[attr-defined]  # as the interpreter calls it
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
