"""JSON Web Tokens for tests: keys, key sets, and tokens that are right but for one thing."""

import base64
import json
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

AUDIENCE, ISSUER = "queueber", "https://issuer.example"

SHARED = b"a shared key of at least 32 bytes"
RSA = rsa.generate_private_key(65537, 2048)
ED25519 = ed25519.Ed25519PrivateKey.generate()
PRIVATE: dict[str, Any] = {"HS256": SHARED, "RS256": RSA, "EdDSA": ED25519}

KEYS: dict[str, dict[str, Any]] = {
    "HS256": {"kty": "oct", "k": base64.urlsafe_b64encode(SHARED).decode().rstrip("=")},
    "RS256": RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True),
    "EdDSA": OKPAlgorithm.to_jwk(ED25519.public_key(), as_dict=True),
}
for _algorithm, _key in KEYS.items():
    _key.pop("key_ops", None)
    _key["kid"] = f"key {_algorithm}"


def write_key_file(file: Path, *algorithms: str) -> Path:
    file.write_text(json.dumps({"keys": [KEYS[each] for each in algorithms or KEYS]}))
    return file


def jwt_flags(file: Path) -> tuple[str, ...]:
    """Of a server that takes them; the file is made."""
    keys = str(write_key_file(file))
    return "--jwt-keys-file", keys, "--jwt-audience", AUDIENCE, "--jwt-issuer", ISSUER


def public_pem(algorithm: str) -> bytes:
    """What an attacker knows."""
    key = PRIVATE[algorithm].public_key()
    pem: bytes = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return pem


def claims(now_ms: int, **changes: object) -> dict[str, Any]:
    """Claims of an admin. A change to None leaves one out."""
    usual: dict[str, object] = {
        "sub": "somebody",
        "aud": AUDIENCE,
        "iss": ISSUER,
        "exp": now_ms // 1000 + 3600,
        "roles": ["admin"],
    }
    return {name: value for name, value in (usual | changes).items() if value is not None}


def sign(given: dict[str, Any], algorithm: str = "EdDSA", **more: Any) -> str:
    key = more.pop("key", None) or PRIVATE[algorithm]
    return jwt.encode(given, key, algorithm, **more)


def unsigned(header: dict[str, Any], given: dict[str, Any], signature: bytes = b"") -> str:
    """A token with any header and any signature."""
    parts = [json.dumps(header).encode(), json.dumps(given).encode(), signature]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)
