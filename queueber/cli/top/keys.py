"""Keys that are pressed on the terminal, without Enter."""

import contextlib
import os
import select
import sys
import termios
import tty
from types import TracebackType
from typing import Self


class Keys:
    """Reads single keys while the block runs; then the terminal is as it was.

    If the input is no terminal, nothing is read: it was meant for another program.
    """

    def __enter__(self) -> Self:
        self._terminal = sys.stdin.fileno() if sys.stdin.isatty() else None
        if self._terminal is not None:
            self._before = termios.tcgetattr(self._terminal)
            tty.setcbreak(self._terminal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._terminal is not None:
            with contextlib.suppress(termios.error):  # the terminal is gone
                termios.tcsetattr(self._terminal, termios.TCSADRAIN, self._before)

    def wait(self, seconds: float) -> str:
        """The key that is pressed within that time; empty if none is."""
        terminal = self._terminal
        pressed, _, _ = select.select([] if terminal is None else [terminal], [], [], seconds)
        if terminal is None or not pressed:
            return ""
        # The end of the input is the end of the terminal.
        return os.read(terminal, 1).decode("latin-1").lower() or "q"
