"""Clients from the addresses and options of Celery."""

import os
import threading
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from queueber.client import Client, connect
from queueber.errors import InvalidArgument
from queueber.tls import TlsOptions

PORT = 9090
OPTIONS = ("connect_timeout", "retry_timeout", "token", "tls")
"""Options of a transport or backend that `queueber.connect` takes as they are."""


def connect_to(
    host: str | None,
    port: int | None,
    *,
    user: str | None,
    password: str | None,
    options: Mapping[str, Any],
    name: str,
) -> Client:
    """Connect. `tls` is True, a `TlsOptions`, or a mapping with its fields."""
    chosen = {option: options[option] for option in OPTIONS if option in options}
    if isinstance(chosen.get("tls"), Mapping):
        chosen["tls"] = TlsOptions(**chosen["tls"])
    return connect(
        f"{host or '127.0.0.1'}:{port or PORT}", name=name, user=user, password=password, **chosen
    )


class ClientOfProcess:
    """One client for all threads of a process, made when it is first used.

    A client does not survive a fork, and Celery forks: each child connects by itself.
    """

    def __init__(self, url: str, options: Mapping[str, Any], name: str) -> None:
        parts = urlsplit(url)
        if parts.scheme != "queueber":
            raise InvalidArgument(f"url: {parts.scheme!r} is not the scheme queueber")
        self._parts = parts
        self._options = options
        self._name = name
        self._forget()
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        """In a child the lock may be held by a thread that is not there."""
        self._client: Client | None = None
        self._lock = threading.Lock()

    def get(self) -> Client:
        with self._lock:
            if self._client is None:
                parts = self._parts
                self._client = connect_to(
                    parts.hostname,
                    parts.port,
                    user=unquote(parts.username) if parts.username else None,
                    password=unquote(parts.password) if parts.password else None,
                    options=self._options,
                    name=self._name,
                )
            return self._client

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None
