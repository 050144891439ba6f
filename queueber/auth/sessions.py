"""Session tokens: what a user gets for a password, for programs that log in once.

A token is signed, and kept nowhere. The key of a user's tokens is made of a key of the server, in a
file that only the server reads, and of what scrypt made of the user's password. So whoever has the
token file alone can make no token, and a new password ends all tokens of the user. What a user may
do is looked up when a token is used. An *access* token does what the user may; a *refresh* token
lives longer, and is good for nothing but new tokens, which end with it: after a week the password
is asked for again.
"""

import base64
import binascii
import hmac
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from queueber.auth.passwords import NOBODY
from queueber.auth.token_file import Entry
from queueber.clock import Clock
from queueber.errors import InvalidArgument, Unauthenticated
from queueber.limits import DAY_MS, HOUR_MS
from queueber.model import SessionTokens

ACCESS_MS = HOUR_MS
REFRESH_MS = 7 * DAY_MS
KEY_FILE = "session-key"

_PREFIX = "qbs."
_KEY_BYTES = 32
_ACCESS, _REFRESH = "access", "refresh"


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A token that was signed here, of a user who has not changed the password since."""

    entry: Entry
    expires_at_ms: int
    is_refresh: bool


def is_session_token(token: str) -> bool:
    return token.startswith(_PREFIX)


class Sessions:
    def __init__(self, folder: Path, clock: Clock) -> None:
        """The key is in the folder; it is made when it is first needed."""
        self._file = folder / KEY_FILE
        self._clock = clock
        self._key: bytes | None = None

    def issue(self, entry: Entry, until_ms: int = 0) -> SessionTokens:
        """New tokens for a user. Those for a refresh token end with it at the latest."""
        now_ms = self._clock.now_ms()
        ends_ms = [now_ms + ACCESS_MS, now_ms + REFRESH_MS]
        for limit_ms in filter(None, (entry.expires_at_ms, until_ms)):
            ends_ms = [min(each, limit_ms) for each in ends_ms]
        access, refresh = (
            self._token(entry, kind, end_ms)
            for kind, end_ms in zip((_ACCESS, _REFRESH), ends_ms, strict=True)
        )
        return SessionTokens(access, ends_ms[0], refresh, ends_ms[1])

    def _token(self, entry: Entry, kind: str, expires_at_ms: int) -> str:
        # The last one makes each token another one.
        said = [kind, entry.name, expires_at_ms, secrets.token_hex(8)]
        payload = _encode(json.dumps(said, separators=(",", ":")).encode())
        return f"{_PREFIX}{payload}.{_encode(self._signature(entry, payload))}"

    def _signature(self, entry: Entry | None, payload: str) -> bytes:
        name, password = ("", NOBODY) if entry is None else (entry.name, entry.password)
        of_user = hmac.digest(self._server_key(), f"{name}\0{password}".encode(), "sha256")
        return hmac.digest(of_user, payload.encode(), "sha256")

    def read(self, token: str, find: Callable[[str], Entry | None]) -> FoundSession | None:
        """What a token says; None if it is not signed here. `find` finds a user by name. Raises
        `Unauthenticated` if it has expired, which only its holder learns."""
        payload, _, signature = token.removeprefix(_PREFIX).partition(".")
        try:
            kind, name, expires_at_ms, _ = json.loads(_decode(payload))
            given = _decode(signature)
        except (ValueError, TypeError, RecursionError, binascii.Error):
            return None
        entry = find(name) if isinstance(name, str) else None
        is_right = hmac.compare_digest(self._signature(entry, payload), given)
        if entry is None or entry.password is None or not is_right:
            return None
        if expires_at_ms <= self._clock.now_ms():
            raise Unauthenticated("the token has expired; log in again")
        return FoundSession(entry, expires_at_ms, kind == _REFRESH)

    def _server_key(self) -> bytes:
        if self._key is None:
            self._key = _read_key(self._file) or _make_key(self._file)
        return self._key


def _read_key(file: Path) -> bytes | None:
    try:
        key = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidArgument(f"cannot read {file}: {error.strerror}") from None
    return key if len(key) == _KEY_BYTES else None


def _make_key(file: Path) -> bytes:
    """Write a new key, which only this user may read; whole or not at all."""
    key = secrets.token_bytes(_KEY_BYTES)
    beside = file.with_name(f"{file.name}.new")
    try:
        beside.unlink(missing_ok=True)
        opened = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(opened, "wb") as written:
            written.write(key)
            written.flush()
            os.fsync(written.fileno())
        beside.replace(file)
    except OSError as error:
        raise InvalidArgument(f"cannot write {file}: {error.strerror}") from None
    return key


def _encode(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
