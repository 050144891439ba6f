"""JSON Web Tokens: signed by somebody else whose keys are in a file, and read here.

A key has one algorithm, and a token must be signed with that: what a token says of its algorithm
only chooses among the keys. So a public key is never taken for a shared secret, and `none` is no
algorithm of any key.

Claims: `sub` is the name of the caller; `exp`, `aud` and `iss` must be there. `queueber` has the
grants, as the token file has them: a list of objects with a role, queues and topics. Or `roles` is
a list of roles, each for every queue and topic; roles that are not ours are passed over.
"""

import hashlib
import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from queueber.auth.callers import Caller
from queueber.auth.patterns import EVERYTHING
from queueber.auth.roles import ROLES
from queueber.auth.token_file import check_name, read_grants
from queueber.clock import Clock
from queueber.errors import InvalidArgument, Unauthenticated
from queueber.limits import KIB, SECOND_MS
from queueber.model import Grant

_KEYS_MAX = 20
_KEY_FILE_BYTES_MAX = 256 * KIB
_SECRET_BYTES_MIN = 32
_RSA_BITS_MIN = 2048
_LEEWAY_SECONDS = 30
"""How far ahead the clock of whoever signs may be."""

_ALGORITHMS = {"oct": "HS256", "RSA": "RS256", "OKP": "EdDSA"}


@dataclass(frozen=True, slots=True)
class Key:
    id: str
    algorithm: str
    thumbprint: str
    """Tells whether the key is still there after the file was read again."""
    key: Any = field(repr=False, compare=False)


def read_key_file(file: Path) -> list[Key]:
    """The keys of a key set (JWKS). Raises `InvalidArgument`, which never shows a key."""
    try:
        text = file.read_bytes()
    except OSError as error:
        raise InvalidArgument(f"cannot read {file}: {error.strerror}") from None
    if len(text) > _KEY_FILE_BYTES_MAX:
        raise InvalidArgument(f"{file}: is larger than {_KEY_FILE_BYTES_MAX} bytes, the limit")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidArgument(f"{file}: is not JSON") from None
    listed = content.get("keys") if isinstance(content, dict) else None
    if not isinstance(listed, list) or not 1 <= len(listed) <= _KEYS_MAX:
        raise InvalidArgument(f'{file}: has no "keys" with 1 to {_KEYS_MAX} keys')
    keys = []
    for at, each in enumerate(listed, 1):
        try:
            keys.append(_read_key(each))
        except InvalidArgument as error:
            raise InvalidArgument(f"{file}: key {at}: {error}") from None
    return keys


def _read_key(source: object) -> Key:
    if not isinstance(source, dict) or source.get("kty") not in _ALGORITHMS:
        raise InvalidArgument("kty: is none of oct, RSA and OKP")
    kind = source["kty"]
    algorithm = _ALGORITHMS[kind]
    if source.get("alg", algorithm) != algorithm:
        raise InvalidArgument(f"alg: keys of kind {kind} are for {algorithm} alone")
    if kind != "oct" and "d" in source:
        raise InvalidArgument("d: this is a private key; the server needs the public one only")
    key_id = source.get("kid", "")
    if not isinstance(key_id, str):
        raise InvalidArgument("kid: is not text")
    key = _load(kind, source)
    thumbprint = hashlib.sha256(json.dumps(source, sort_keys=True).encode()).hexdigest()
    return Key(key_id, algorithm, thumbprint, key)


def _load(kind: str, source: dict[str, Any]) -> Any:
    from jwt import algorithms

    try:
        key: Any
        if kind == "oct":
            key = algorithms.HMACAlgorithm.from_jwk(source)
            is_strong = len(key) >= _SECRET_BYTES_MIN
        elif kind == "RSA":
            key = algorithms.RSAAlgorithm.from_jwk(source)
            is_strong = key.key_size >= _RSA_BITS_MIN
        else:
            key = algorithms.OKPAlgorithm.from_jwk(source)
            is_strong = source.get("crv") == "Ed25519"
    except Exception:  # noqa: BLE001  what the library says may show the key
        raise InvalidArgument(f"is not a key of kind {kind}") from None
    if not is_strong:
        raise InvalidArgument(
            f"is too weak: give oct keys of {_SECRET_BYTES_MIN} bytes, RSA keys of {_RSA_BITS_MIN} "
            "bits, OKP keys on Ed25519"
        )
    return key


class WebTokens:
    """Reads tokens that were signed with one of the keys."""

    def __init__(self, keys: list[Key], *, audience: str, issuer: str, clock: Clock) -> None:
        self.keys = keys
        self._audience = audience
        self._issuer = issuer
        self._clock = clock

    def read(self, token: str) -> Caller:
        """The caller, whose origin is the key. Raises `Unauthenticated`."""
        claims, key = self._verified(token)
        expires_at_ms = _time_ms(claims, "exp")
        now_ms = self._clock.now_ms()
        if expires_at_ms is None or expires_at_ms <= now_ms:
            raise Unauthenticated("the token has expired; get a new one")
        not_before_ms = _time_ms(claims, "nbf") if "nbf" in claims else 0
        if not_before_ms is None or not_before_ms > now_ms + _LEEWAY_SECONDS * SECOND_MS:
            raise Unauthenticated("the token is not valid yet")
        try:
            name = check_name(claims["sub"], "sub")
            return Caller(name, _grants(claims), expires_at_ms, origin=key)
        except InvalidArgument as error:
            raise Unauthenticated(f"the token says nothing that counts here: {error}") from None

    def _verified(self, token: str) -> tuple[dict[str, Any], Key]:
        """The claims of a token whose signature, audience and issuer are right."""
        import jwt

        wrong = "the token is not valid"
        try:
            header = jwt.get_unverified_header(token)
        except Exception:  # noqa: BLE001  whatever is wrong with it
            raise Unauthenticated(wrong) from None
        named = header.get("kid")
        for key in self.keys:
            if key.algorithm != header.get("alg") or (named is not None and named != key.id):
                continue
            claims = self._claims(token, key)
            if claims is not None:
                return claims, key
        raise Unauthenticated(wrong)

    def _claims(self, token: str, key: Key) -> dict[str, Any] | None:
        """What the token says, if this key has signed it; None if it has not."""
        import jwt

        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=self._audience,
                issuer=self._issuer,
                # Times are checked by the server's own clock.
                options={
                    "require": ["exp", "aud", "iss", "sub"],
                    "verify_exp": False,
                    "verify_nbf": False,
                    "verify_iat": False,
                },
            )
        except jwt.InvalidAudienceError:
            raise Unauthenticated("the token is for another audience") from None
        except jwt.InvalidIssuerError:
            raise Unauthenticated("the token is from another issuer") from None
        except jwt.MissingRequiredClaimError as error:
            raise Unauthenticated(f"the token has no {error.claim!r}") from None
        except Exception:  # noqa: BLE001  whatever is wrong with it; another key may fit
            return None
        return claims


def _time_ms(claims: dict[str, Any], name: str) -> int | None:
    at = claims.get(name)
    is_number = isinstance(at, int | float) and not isinstance(at, bool) and math.isfinite(at)
    return int(at * SECOND_MS) if is_number and at is not None and 0 < at < 1 << 40 else None


def _grants(claims: dict[str, Any]) -> tuple[Grant, ...]:
    if "queueber" in claims:
        return read_grants({"grants": claims["queueber"]})
    roles = claims.get("roles", [])
    listed = roles if isinstance(roles, list) else []
    everywhere = (EVERYTHING,)
    grants = tuple(
        Grant(role, everywhere, everywhere)
        for role in dict.fromkeys(each for each in listed if isinstance(each, str))
        if role in ROLES
    )
    if not grants:
        raise InvalidArgument("it has neither a claim 'queueber' nor one of our roles in 'roles'")
    return grants
