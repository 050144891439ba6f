"""A receiver of webhooks for tests: keeps what comes, and answers as it is told."""

import contextlib
import json
import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

_WAIT_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # of five, some of many callers at once are turned away


Answering = Callable[[Received], tuple[int, object]]
"""The status and the JSON to answer with."""


class Receiver:
    def __init__(self, answering: Answering, port: int) -> None:
        self.answering = answering
        self.received: queue.Queue[Received] = queue.Queue()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                named = {name.lower(): value for name, value in self.headers.items()}
                got = Received(self.path, named, body)
                receiver.received.put(got)
                status, answer = receiver.answering(got)
                told = json.dumps(answer).encode()
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    for name, value in receiver.headers.items():
                        self.send_header(name, value)
                    self.send_header("content-length", str(len(told)))
                    self.end_headers()
                    self.wfile.write(told)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.headers: dict[str, str] = {}
        """Sent with every answer."""
        self.server = _Server(("127.0.0.1", port), Handler)

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def next(self, seconds: float = _WAIT_SECONDS) -> Received:
        return self.received.get(timeout=seconds)

    def is_quiet(self, seconds: float) -> bool:
        try:
            self.received.get(timeout=seconds)
        except queue.Empty:
            return True
        return False


@contextlib.contextmanager
def running_receiver(
    answering: Answering = lambda got: (200, {}), *, port: int = 0
) -> Iterator[Receiver]:
    receiver = Receiver(answering, port)
    thread = threading.Thread(target=receiver.server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield receiver
    finally:
        receiver.server.shutdown()
        receiver.server.server_close()
        thread.join()


def write_key(file: Path, count: int = 1) -> Path:
    """So many keys that sign webhooks, as openssl writes them."""
    formats = (Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    keys = [Ed25519PrivateKey.generate().private_bytes(*formats) for _ in range(count)]
    file.write_bytes(b"".join(keys))
    return file
