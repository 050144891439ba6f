"""Credentials to callers: tokens of a file, JSON Web Tokens, passwords and certificates.

A wrong credential gets one answer, whatever is wrong with it, after the same work: what is not
there is compared with something that fits nothing.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Protocol

from queueber.auth.callers import Caller
from queueber.auth.passwords import NOBODY, is_password
from queueber.auth.sessions import Sessions, is_session_token
from queueber.auth.throttle import Throttle
from queueber.auth.token_file import Entry, read_token_file
from queueber.auth.tokens import digest, split_token
from queueber.auth.web_tokens import Key, WebTokens, read_key_file
from queueber.clock import Clock
from queueber.errors import InvalidArgument, Unauthenticated
from queueber.limits import PASSWORD_BYTES_MAX, TOKEN_BYTES_MAX
from queueber.model import Credential

_WRONG = "the token, or the user and password, are not known here"
_NO_DIGEST = "0" * 64

Run = Callable[[Callable[[], bool]], Awaitable[bool]]
"""Runs something long elsewhere than on the server's thread."""


class Sources(Protocol):
    """Where credentials are, as the options of the server name it."""

    @property
    def data_dir(self) -> Path: ...
    @property
    def tokens_file(self) -> Path | None: ...
    @property
    def jwt_keys_file(self) -> Path | None: ...
    @property
    def jwt_audience(self) -> str: ...
    @property
    def jwt_issuer(self) -> str: ...


class Authenticator:
    def __init__(self, sources: Sources, clock: Clock, in_background: Run) -> None:
        """Raises `InvalidArgument` if a file cannot be read, or is wrong."""
        self._sources = sources
        self._clock = clock
        self._in_background = in_background
        self.throttle = Throttle(clock)
        self._entries: dict[tuple[str, str], Entry] = {}
        self._callers: dict[Entry, Caller] = {}
        self._web_tokens: WebTokens | None = None
        self._sessions = Sessions(sources.data_dir, clock)
        self._proof_key = secrets.token_bytes(32)
        self._proven: dict[Entry, bytes] = {}
        """Of users who have shown their password, a digest with a key that only this process has.
        It is known again at once, whatever others who come from the same gateway guess."""
        self.reload()

    def reload(self) -> None:
        """Read the files again. If one is wrong, raises `InvalidArgument` and changes nothing."""
        sources = self._sources
        entries = read_token_file(sources.tokens_file) if sources.tokens_file is not None else []
        web_tokens = None
        if sources.jwt_keys_file is not None:
            web_tokens = WebTokens(
                _read_keys(sources.jwt_keys_file),
                audience=sources.jwt_audience,
                issuer=sources.jwt_issuer,
                clock=self._clock,
            )
        self._entries = {entry.key: entry for entry in entries}
        # An entry that did not change keeps its caller.
        self._callers = {
            entry: self._callers.get(entry) or self._caller(entry) for entry in entries
        }
        self._proven = {e: proof for e, proof in self._proven.items() if e in self._callers}
        self._web_tokens = web_tokens

    def _caller(self, entry: Entry) -> Caller:
        """Of an entry of the file. Those with a password may have tokens instead of it."""
        issue = partial(self._sessions.issue, entry) if entry.password is not None else None
        return Caller(entry.name, entry.grants, entry.expires_at_ms, origin=entry, issue=issue)

    def is_current(self, caller: Caller) -> bool:
        """Whether the files still have what the caller has authenticated with, unchanged."""
        if caller.origin in self._callers:
            return True
        keys = self._web_tokens.keys if self._web_tokens is not None else []
        return any(caller.origin == key for key in keys)

    # --- credentials ------------------------------------------------------------------------------

    async def authenticate(self, credential: Credential, host: str) -> Caller:
        """The caller. Raises `Unauthenticated`, or `Unavailable` after too many wrong passwords."""
        if credential.user or credential.password:
            if credential.token:
                raise InvalidArgument("credential: has a token and a user; give one of them")
            return await self._by_password(credential.user, credential.password, host)
        return self._by_token(credential.token)

    def by_certificate(self, common_name: str) -> Caller | None:
        """The caller of a certificate that the TLS layer has verified; None if nobody has it."""
        entry = self._entries.get(("certificate", common_name))
        if entry is None or self._has_expired(entry):
            return None
        return self._callers[entry]

    def _by_token(self, token: str) -> Caller:
        if not token or len(token) > TOKEN_BYTES_MAX:
            raise Unauthenticated(_WRONG)
        if is_session_token(token):
            return self._by_session(token)
        parts = split_token(token)
        if parts is None and self._web_tokens is not None and token.count(".") == 2:
            return self._web_tokens.read(token)
        token_id, secret = parts or ("", "")
        entry = self._entries.get(("token", token_id))
        expected = entry.sha256 if entry is not None else _NO_DIGEST
        is_right = hmac.compare_digest(digest(secret), expected)
        if entry is None or not is_right:
            raise Unauthenticated(_WRONG)
        return self._unless_expired(entry)

    def _by_session(self, token: str) -> Caller:
        found = self._sessions.read(token, lambda name: self._entries.get(("user", name)))
        if found is None:
            raise Unauthenticated(_WRONG)
        entry, expires_at_ms = found.entry, found.expires_at_ms
        if not found.is_refresh:
            return Caller(entry.name, entry.grants, expires_at_ms, origin=entry)
        issue = partial(self._sessions.issue, entry, expires_at_ms)
        return Caller(entry.name, (), expires_at_ms, origin=entry, issue=issue)

    async def _by_password(self, user: str, password: str, host: str) -> Caller:
        if len(password.encode()) > PASSWORD_BYTES_MAX:
            raise Unauthenticated(_WRONG)
        throttle, entry = self.throttle, self._entries.get(("user", user))
        proof = hmac.digest(self._proof_key, password.encode(), "sha256")
        if entry is not None and hmac.compare_digest(self._proven.get(entry, b""), proof):
            return self._unless_expired(entry)
        throttle.check_password(host, user)
        known = entry.password if entry is not None and entry.password is not None else NOBODY
        throttle.checks += 1
        try:
            is_right = await self._in_background(partial(is_password, known, password))
        finally:
            throttle.checks -= 1
        # The file may have been read again meanwhile.
        if entry is None or not is_right or entry not in self._callers:
            throttle.wrong_password(host, user)
            raise Unauthenticated(_WRONG)
        self._proven[entry] = proof
        return self._unless_expired(entry)

    def _unless_expired(self, entry: Entry) -> Caller:
        """Only whoever knows the secret learns that it has expired."""
        if self._has_expired(entry):
            raise Unauthenticated("the credential has expired; ask for a new one")
        return self._callers[entry]

    def _has_expired(self, entry: Entry) -> bool:
        return 0 < entry.expires_at_ms <= self._clock.now_ms()


def _read_keys(file: Path) -> list[Key]:
    try:
        return read_key_file(file)
    except ImportError:
        raise InvalidArgument(
            "jwt-keys-file: needs PyJWT; install it with 'pip install queueber[auth]'"
        ) from None
