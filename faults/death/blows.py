"""The faults of a server and its clients. Each returns once it is over, with what is wrong."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import queueber
from faults.death.fleet import Fleet
from faults.death.members import LEASE_SECONDS
from faults.death.shifted_clock import BACK, FORWARD, HOUR_MS
from faults.recorder import Recorder
from queueber.cli.exits import STORE
from queueber.testing import ServerProcess

STOP_SECONDS = 1.5 * LEASE_SECONDS


def shifted_server(data_dir: Path) -> ServerProcess:
    return ServerProcess(data_dir, command=_command(0))


def _command(shift_ms: int) -> tuple[str, ...]:
    return (sys.executable, "-m", "faults.death.shifted_clock", str(shift_ms))


@dataclass(slots=True)
class Target:
    server: ServerProcess
    fleet: Fleet
    recorder: Recorder
    shift_ms: int = 0
    """How far the server's clock is ahead of ours now."""
    shift_ms_max: int = 0
    """How far it was ahead at most."""

    def signal(self, number: signal.Signals) -> None:
        assert self.server.process is not None
        self.server.process.send_signal(number)

    def step_clock(self, ms: int) -> None:
        """Change the clock between two runs of the server, which reads it at its start."""
        with self.recorder.call("blows", "clock_step", queue="", ms=ms):
            self.shift_ms += ms
            self.shift_ms_max = max(self.shift_ms_max, self.shift_ms)
            self.server.command = _command(self.shift_ms)
            kill_server(self)


def kill_server(target: Target) -> str:
    with target.recorder.call("blows", "restart", queue=""):
        target.server.kill()
        target.server.start()
    return ""


def kill_starting_server(target: Target) -> str:
    """Kill the server, and again during its next start."""
    with target.recorder.call("blows", "restart", queue=""):
        target.server.kill()
        begun = subprocess.Popen(
            [*target.server.command, "serve", "--listen", "127.0.0.1:0",
             "--data-dir", str(target.server.data_dir)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(target.fleet.random.uniform(0, 0.6))
        begun.kill()
        begun.wait()
        target.server.start()
    return ""


def stop_server(target: Target) -> str:
    target.signal(signal.SIGSTOP)
    time.sleep(STOP_SECONDS)
    target.signal(signal.SIGCONT)
    return _goes_on(target)


def kill_member(target: Target) -> str:
    target.fleet.kill_one()
    return ""


def stop_member(target: Target) -> str:
    target.fleet.stop_one(STOP_SECONDS)
    return ""


def step_forward(target: Target) -> str:
    target.step_clock(HOUR_MS)
    return ""


def step_back(target: Target) -> str:
    target.step_clock(-HOUR_MS)
    return ""


def step_while_it_runs(target: Target) -> str:
    """Step the clock and back. It must have no effect, so it is not recorded."""
    there, back = target.fleet.random.sample([FORWARD, BACK], 2)
    target.signal(there)
    time.sleep(STOP_SECONDS)
    target.signal(back)
    return _goes_on(target)


def start_a_second_server(target: Target) -> str:
    second = subprocess.run(
        [sys.executable, "-m", "queueber", "serve", "--listen", "127.0.0.1:0",
         "--data-dir", str(target.server.data_dir)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if second.returncode != STORE or "is in use by another server" not in second.stderr:
        return f"a second server ended with {second.returncode}: {second.stderr}"
    return _goes_on(target)


def _goes_on(target: Target) -> str:
    assert target.server.process is not None
    with queueber.connect(target.server.address) as client:
        client.server()
    if (code := target.server.process.poll()) is not None:
        return f"the server ended with {code}"
    return ""


Blow = Callable[[Target], str]

BLOWS: Mapping[str, tuple[Blow, int]] = {
    "server killed": (kill_server, 1),
    "server killed as it starts": (kill_starting_server, 20),
    "server stopped": (stop_server, 20),
    "client killed": (kill_member, 5),
    "client stopped": (stop_member, 10),
    "clock an hour on": (step_forward, 20),
    "clock an hour back": (step_back, 20),
    "clock set as it runs": (step_while_it_runs, 20),
    "second server": (start_a_second_server, 20),
}
"""The faults, and how many kills there are for one of each."""
