"""A fleet: client processes, which are restarted after they were killed."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from faults.recorder import Recorder

CREW = (
    "produce", "produce", "consume", "consume", "work", "work", "old",
    "publish", "publish", "follow", "share", "share", "subscribe",
    "push", "push", "move", "move",
)  # fmt: skip
DRAINERS = ("work", "share", "subscribe")
"""Those that take everything out that others have put in."""
HOLDERS = ("consume", "work", "old", "share", "subscribe", "push", "move")
"""Those that hold leases, or get messages pushed."""


@dataclass(slots=True)
class Member:
    role: str
    name: str
    process: "subprocess.Popen[bytes]"


class Fleet:
    def __init__(self, address: str, folder: Path, random: Random, recorder: Recorder) -> None:
        self._address = address
        self._folder = folder
        self.random = random
        self._recorder = recorder
        self._started = 0
        self.failures: list[str] = []
        self.members = [self._start(role) for role in CREW]

    def _start(self, role: str) -> Member:
        self._started += 1
        name = f"{role}-{self._started}"
        module = "faults.death.old_client" if role == "old" else "faults.death.members"
        file = self._folder / f"{name}.jsonl"
        seed = str(self.random.getrandbits(32))
        command = [sys.executable, "-m", module, role, self._address, str(file), name, seed]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return Member(role, name, process)

    def wait_until_at_work(self, seconds: float) -> None:
        """Wait until every member has made a call."""
        give_up_at = time.monotonic() + seconds
        for member in self.members:
            while not self._has_recorded(member) and time.monotonic() < give_up_at:
                time.sleep(0.02)

    def _has_recorded(self, member: Member) -> bool:
        file = self._folder / f"{member.name}.jsonl"
        return file.exists() and file.stat().st_size > 0

    def look_after(self) -> None:
        """Raise if a member has ended by itself."""
        for at, member in enumerate(self.members):
            if member.process.poll() is not None:
                told = (self._folder / f"{member.name}.log").read_text()[-2000:]
                self.failures.append(f"{member.name} ended by itself:\n{told}")
                self.members[at] = self._start(member.role)

    def kill_one(self) -> None:
        at = self.random.randrange(len(self.members))
        self._kill(self.members[at])
        self.members[at] = self._start(self.members[at].role)

    def stop_one(self, seconds: float) -> None:
        """Stop a member that holds leases for that long."""
        holders = [member for member in self.members if member.role in HOLDERS]
        process = self.random.choice(holders).process
        process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        process.send_signal(signal.SIGCONT)

    def dismiss(self, *, but: Sequence[str] = ()) -> None:
        """End all members for good, but those of some roles."""
        for member in self.members:
            if member.role not in but:
                self._kill(member)
        self.members = [member for member in self.members if member.role in but]

    def _kill(self, member: Member) -> None:
        """Record that leases bound to its connection, such as those of a pool, end."""
        with self._recorder.call(member.name, "hang_up", queue=""):
            member.process.kill()
            member.process.wait()


@contextmanager
def running_fleet(
    address: str, folder: Path, random: Random, recorder: Recorder
) -> Iterator[Fleet]:
    fleet = Fleet(address, folder, random, recorder)
    try:
        yield fleet
    finally:
        fleet.dismiss()
