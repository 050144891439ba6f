"""A gateway in its own process for tests, and a small client that shows what was answered."""

import base64
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_START_SECONDS_MAX = 30.0


@dataclass(frozen=True, slots=True)
class Answered:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """The code of a problem; fails if the answer is none."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        return str(self.json["code"])


@dataclass(slots=True)
class GatewayProcess:
    """A gateway in its own process."""

    address: str
    process: "subprocess.Popen[bytes]"
    log_file: Path
    headers: dict[str, str] = field(default_factory=dict)
    """Sent with every request."""

    @property
    def host_port(self) -> tuple[str, int]:
        host, _, port = self.address.rpartition(":")
        return host, int(port)

    def connection(self, timeout: float = 60.0) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self.host_port, timeout=timeout)

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answered:
        """Send JSON, or raw bytes, or nothing."""
        sent = dict(self.headers)
        data = raw
        if body is not None:
            data = json.dumps(body).encode()
            sent["content-type"] = "application/json"
        elif raw is not None:
            sent["content-type"] = "application/octet-stream"
        with contextlib.closing(self.connection()) as connection:
            connection.request(method, path, data, sent | (headers or {}))
            response = connection.getresponse()
            named = {name.lower(): value for name, value in response.getheaders()}
            return Answered(response.status, named, response.read())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@contextlib.contextmanager
def running_gateway(server: str, *options: str) -> Iterator[GatewayProcess]:
    """`queueber gateway` on a free port, for the server at that address."""
    with tempfile.TemporaryDirectory(prefix="queueber-") as folder:
        address_file, log_file = Path(folder) / "address", Path(folder) / "log"
        command = [
            sys.executable, "-m", "queueber", "gateway", "--server", server,
            "--http", "127.0.0.1:0", "--address-file", str(address_file), *options,
        ]  # fmt: skip
        with log_file.open("ab") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env=dict(os.environ))
        try:
            give_up_at = time.monotonic() + _START_SECONDS_MAX
            while not (address_file.is_file() and address_file.read_text()):
                if process.poll() is not None or time.monotonic() > give_up_at:
                    raise RuntimeError(f"the gateway did not start:\n{log_file.read_text()}")
                time.sleep(0.02)
            yield GatewayProcess(address_file.read_text(), process, log_file)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(30)


def to_base64(contents: bytes) -> str:
    return base64.b64encode(contents).decode()
