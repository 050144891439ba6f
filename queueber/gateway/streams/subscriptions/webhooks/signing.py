"""The Ed25519 keys of webhooks: who gets one sees that it is from this server.

Keys are in a file, of which the first signs and the others are still published: so one may be
replaced. A server that is not protected may do without a file: the key is made once, and kept in a
topic, for whoever reaches such a server may do everything anyway.
"""

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from queueber.client import AsyncClient
from queueber.errors import FailedPrecondition, InvalidArgument, OutcomeUnknown

TOPIC = "__ds/keys"
_KEYS_MAX = 10
_Key = Any
"""An `Ed25519PrivateKey`, whose library is imported with the first key: most gateways have none."""
_PEM = re.compile(rb"-----BEGIN [A-Z ]+-----.+?-----END [A-Z ]+-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SigningKeys:
    keys: tuple[_Key, ...]
    """The first one signs."""

    @property
    def kid(self) -> str:
        return _kid(self.keys[0])

    def sign(self, body: bytes, now_ms: int) -> str:
        """The `Webhook-Signature` of a body that is sent now."""
        at = now_ms // 1000
        signature = self.keys[0].sign(f"{at}.".encode() + body)
        return f"t={at},kid={self.kid},ed25519={_text(signature)}"

    def published(self) -> list[dict[str, str]]:
        """The public keys, as a key set (JWKS) has them."""
        return [
            {**_public(key), "kid": _kid(key), "use": "sig", "alg": "EdDSA"} for key in self.keys
        ]

    @property
    def token_key(self) -> bytes:
        """What tokens of wakes are signed with. Nobody learns it from signatures or public keys."""
        secret: bytes = self.keys[0].private_bytes_raw()
        return hashlib.sha256(b"queueber tokens of wakes\n" + secret).digest()


def read_keys(file: Path) -> SigningKeys:
    """The keys of a PEM file. Raises `InvalidArgument`."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        blocks = _PEM.findall(file.read_bytes())
    except OSError as error:
        raise InvalidArgument(f"webhook-key-file: {file}: {error.strerror}") from None
    if not 1 <= len(blocks) <= _KEYS_MAX:
        raise InvalidArgument(
            f"webhook-key-file: {file} has {len(blocks)} PEM keys; it needs 1 to {_KEYS_MAX}, such "
            "as 'openssl genpkey -algorithm ed25519' writes"
        )
    keys = []
    for block in blocks:
        try:
            key = load_pem_private_key(block, None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            raise InvalidArgument(
                f"webhook-key-file: {file} has a key that cannot be read"
            ) from None
        if not isinstance(key, Ed25519PrivateKey):
            raise InvalidArgument(f"webhook-key-file: {file} has a key that is not Ed25519")
        keys.append(key)
    return SigningKeys(tuple(keys))


async def kept_keys(client: AsyncClient) -> SigningKeys:
    """The keys that the server keeps. Of gateways that make some at one time, one is first."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    await client.create_topic(TOPIC, retention_messages=1, content_type="application/json")
    topic = client.topic(TOPIC, must_exist=True)
    while not (found := (await topic.read(last=1)).payloads):
        made = Ed25519PrivateKey.generate().private_bytes_raw()
        told = json.dumps({"ed25519": [_text(made)]}).encode()
        try:
            await topic.publish([told], expected_offset=0)
        except (FailedPrecondition, OutcomeUnknown):
            continue
    secrets = json.loads(found[-1])["ed25519"]
    return SigningKeys(
        tuple(
            Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(each + "=="))
            for each in secrets
        )
    )


def _public(key: _Key) -> dict[str, str]:
    return {"crv": "Ed25519", "kty": "OKP", "x": _text(key.public_key().public_bytes_raw())}


def _kid(key: _Key) -> str:
    """From the thumbprint of the public key (RFC 7638)."""
    told = json.dumps(_public(key), separators=(",", ":"), sort_keys=True)
    return f"ds_{_text(hashlib.sha256(told.encode()).digest())}"


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
