"""JSON Web Tokens: right ones of each algorithm, and every way to be wrong that we know of."""

import hashlib
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ed448, rsa
from jwt.algorithms import OKPAlgorithm, RSAAlgorithm

from queueber.auth.web_tokens import WebTokens, read_key_file
from queueber.clock import ManualClock
from queueber.errors import InvalidArgument, Unauthenticated
from queueber.model import CallerInfo, Grant
from tests.support.web_tokens import (
    AUDIENCE,
    ISSUER,
    KEYS,
    PRIVATE,
    RSA,
    claims,
    public_pem,
    sign,
    unsigned,
    write_key_file,
)

CLOCK = ManualClock()
NOW_MS = CLOCK.now_ms()
ALL = ("*",)


@pytest.fixture(scope="module")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> WebTokens:
    file = write_key_file(tmp_path_factory.mktemp("keys") / "keys.json")
    return WebTokens(read_key_file(file), audience=AUDIENCE, issuer=ISSUER, clock=CLOCK)


def refused(tokens: WebTokens, token: str) -> str:
    with pytest.raises(Unauthenticated) as caught:
        tokens.read(token)
    assert token not in str(caught.value)
    return str(caught.value)


# --- right ones -----------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", KEYS)
@pytest.mark.parametrize("names_key", [True, False])
def test_a_token_of_each_algorithm_is_read(
    algorithm: str, names_key: bool, tokens: WebTokens
) -> None:
    headers = {"kid": f"key {algorithm}"} if names_key else {}
    token = sign(claims(NOW_MS), algorithm, headers=headers)

    caller = tokens.read(token)

    expires_at_ms = (NOW_MS // 1000 + 3600) * 1000
    assert caller.info == CallerInfo("somebody", (Grant("admin", ALL, ALL),), expires_at_ms)
    assert caller.origin == next(key for key in tokens.keys if key.algorithm == algorithm)


def test_the_claim_queueber_has_grants_as_the_token_file_has_them(tokens: WebTokens) -> None:
    grants = [
        {"role": "worker", "queues": ["ocr-*"]},
        {"role": "reader", "queues": ["ocr-*"], "topics": ["log/*"]},
    ]

    caller = tokens.read(sign(claims(NOW_MS, queueber=grants)))

    assert caller.grants == (
        Grant("worker", ("ocr-*",), ()),
        Grant("reader", ("ocr-*",), ("log/*",)),
    )


def test_roles_of_others_are_passed_over(tokens: WebTokens) -> None:
    caller = tokens.read(sign(claims(NOW_MS, roles=["offline_access", "reader", 7, "reader"])))

    assert caller.grants == (Grant("reader", ALL, ALL),)


def test_an_audience_among_several_is_enough(tokens: WebTokens) -> None:
    assert tokens.read(sign(claims(NOW_MS, aud=["other", AUDIENCE]))).name == "somebody"


# --- wrong claims ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"exp": NOW_MS // 1000 - 1}, "the token has expired"),
        ({"exp": NOW_MS // 1000}, "the token has expired"),
        ({"exp": -1}, "the token has expired"),
        ({"exp": 1 << 70}, "the token has expired"),
        ({"exp": None}, "the token has no 'exp'"),
        ({"exp": "tomorrow"}, "the token"),
        ({"exp": True}, "the token has expired"),
        ({"nbf": NOW_MS // 1000 + 60}, "the token is not valid yet"),
        ({"nbf": "now"}, "the token is not valid yet"),
        ({"aud": "other"}, "the token is for another audience"),
        ({"aud": ["other"]}, "the token is for another audience"),
        ({"aud": AUDIENCE.upper()}, "the token is for another audience"),
        ({"aud": None}, "the token has no 'aud'"),
        ({"iss": "https://other.example"}, "the token is from another issuer"),
        ({"iss": None}, "the token has no 'iss'"),
        ({"sub": None}, "the token has no 'sub'"),
        ({"sub": ""}, "the token says nothing that counts here: sub: '' is not a name"),
        ({"sub": "line\nbreak"}, "the token says nothing that counts here: sub: "),
        ({"sub": "x" * 257}, "the token says nothing that counts here: sub: is longer than 256"),
        ({"roles": ["boss"]}, "it has neither a claim 'queueber' nor one of our roles"),
        ({"roles": "admin"}, "it has neither a claim 'queueber' nor one of our roles"),
        ({"roles": None}, "it has neither a claim 'queueber' nor one of our roles"),
        ({"queueber": []}, "grants: give a list of 1 to 100"),
        ({"queueber": "admin"}, "grants: give a list of 1 to 100"),
        ({"queueber": [{"role": "boss", "queues": ["*"]}]}, "role: 'boss' is none of"),
        ({"queueber": [{"role": "admin"}]}, "name the queues or topics"),
        ({"queueber": [{"role": "admin", "queues": ["*"], "x": 1}]}, "and nothing else"),
    ],
)
def test_a_token_with_a_wrong_claim_is_refused(
    changes: dict[str, object], told: str, tokens: WebTokens
) -> None:
    assert told in refused(tokens, sign(claims(NOW_MS, **changes)))


def test_clocks_may_differ_a_little(tokens: WebTokens) -> None:
    assert tokens.read(sign(claims(NOW_MS, nbf=NOW_MS // 1000 + 20))).name == "somebody"


# --- forged ones ----------------------------------------------------------------------------------


def test_a_token_without_a_signature_is_refused(tokens: WebTokens) -> None:
    for algorithm in ("none", "None", "NONE", "nOnE", ""):
        header = {"alg": algorithm, "typ": "JWT"}
        assert refused(tokens, unsigned(header, claims(NOW_MS))) == "the token is not valid"
    assert refused(tokens, unsigned({"alg": "EdDSA"}, claims(NOW_MS))) == "the token is not valid"
    assert refused(tokens, unsigned({}, claims(NOW_MS))) == "the token is not valid"


@pytest.mark.parametrize("public", ["RS256", "EdDSA"])
@pytest.mark.parametrize("named", ["HS256", "RS256", "EdDSA"])
def test_a_public_key_is_never_taken_for_a_shared_one(
    public: str, named: str, tokens: WebTokens
) -> None:
    """The attacker signs with what everybody knows, and says that it is HS256."""
    for secret in (public_pem(public), json.dumps(KEYS[public]).encode()):
        header = {"alg": "HS256", "typ": "JWT", "kid": f"key {named}"}
        start = unsigned(header, claims(NOW_MS)).rpartition(".")[0]
        signature = hmac.new(secret, start.encode(), hashlib.sha256).digest()
        assert refused(tokens, unsigned(header, claims(NOW_MS), signature))


def test_a_token_of_another_key_is_refused(tokens: WebTokens) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    own = {"kid": "key RS256"}

    assert refused(tokens, sign(claims(NOW_MS), "RS256", key=stranger, headers=own))
    assert refused(tokens, sign(claims(NOW_MS), "RS256", key=stranger))


def test_another_algorithm_of_the_same_key_is_refused(tokens: WebTokens) -> None:
    for algorithm in ("RS384", "RS512", "PS256"):
        assert refused(tokens, sign(claims(NOW_MS), algorithm, key=RSA))
    for algorithm in ("HS384", "HS512"):
        assert refused(tokens, sign(claims(NOW_MS), algorithm, key=b"x" * 64))


def test_a_key_that_the_token_brings_along_is_not_looked_at(tokens: WebTokens) -> None:
    stranger = rsa.generate_private_key(65537, 2048)
    own = RSAAlgorithm.to_jwk(stranger.public_key(), as_dict=True)
    for headers in (
        {"jwk": own},
        {"jku": "http://127.0.0.1:1/keys"},
        {"x5u": "file:///etc/passwd"},
    ):
        assert refused(tokens, sign(claims(NOW_MS), "RS256", key=stranger, headers=headers))


@pytest.mark.parametrize("kid", ["other", "../../etc/passwd", "", "' or 1=1", "key RS256"])
def test_a_key_that_is_named_wrong_is_not_found(kid: str, tokens: WebTokens) -> None:
    assert refused(tokens, sign(claims(NOW_MS), "EdDSA", headers={"kid": kid}))


def test_a_token_that_was_changed_is_refused(tokens: WebTokens) -> None:
    header, _, signature = sign(claims(NOW_MS)).split(".")
    _, body, _ = sign(claims(NOW_MS, sub="root")).split(".")

    assert refused(tokens, f"{header}.{body}.{signature}") == "the token is not valid"


@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "...", "a.b.c", "eyJ.eyJ.", "\0.\0.\0", "ü.ü.ü", "{}.{}.{}",
     "a" * 10_000 + "..", "W10.W10.W10", "bnVsbA.bnVsbA.bnVsbA"],
)  # fmt: skip
def test_what_is_no_token_is_refused_without_a_trace(text: str, tokens: WebTokens) -> None:
    with pytest.raises(Unauthenticated, match="the token is not valid"):
        tokens.read(text)


def test_deep_json_is_refused(tokens: WebTokens) -> None:
    deep: Any = "[" * 5000 + "]" * 5000
    start = unsigned({"alg": "HS256"}, {}).split(".")[0]
    assert refused(tokens, f"{start}.{deep}.x")


# --- key files ------------------------------------------------------------------------------------


def with_key(tmp_path: Path, **changes: object) -> Path:
    file = tmp_path / "keys.json"
    file.write_text(json.dumps({"keys": [{**KEYS["RS256"], **changes}]}))
    return file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", 'has no "keys"'),
        ("{}", 'has no "keys"'),
        ('{"keys": []}', 'has no "keys"'),
        ('{"keys": [1]}', "key 1: kty: is none of oct, RSA and OKP"),
        ('{"keys": [{"kty": "EC"}]}', "key 1: kty: is none of oct, RSA and OKP"),
        ('{"keys": [{"kty": "oct", "k": "c2hvcnQ"}]}', "key 1: is too weak"),
        ('{"keys": [{"kty": "oct"}]}', "key 1: is not a key of kind oct"),
        ('{"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}', "key 1: is "),
        ('{"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}', "is not a key of kind OKP"),
    ],
)
def test_a_wrong_key_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "keys.json"
    file.write_text(text)

    with pytest.raises(InvalidArgument) as caught:
        read_key_file(file)

    assert told in str(caught.value)
    assert str(file) in str(caught.value)


def test_keys_that_are_weak_private_or_for_another_algorithm_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match="key 1: alg: keys of kind RSA are for RS256 alone"):
        read_key_file(with_key(tmp_path, alg="HS256"))
    with pytest.raises(InvalidArgument, match="key 1: d: this is a private key"):
        read_key_file(with_key(tmp_path, **RSAAlgorithm.to_jwk(RSA, as_dict=True)))
    small = rsa.generate_private_key(65537, 1024).public_key()
    with pytest.raises(InvalidArgument, match="key 1: is too weak"):
        read_key_file(with_key(tmp_path, **RSAAlgorithm.to_jwk(small, as_dict=True)))
    other = OKPAlgorithm.to_jwk(ed448.Ed448PrivateKey.generate().public_key(), as_dict=True)
    with pytest.raises(InvalidArgument, match="key 1: is too weak"):
        read_key_file(with_key(tmp_path, **other))


def test_a_key_shows_nothing_of_itself(tmp_path: Path) -> None:
    (key,) = read_key_file(write_key_file(tmp_path / "keys.json", "HS256"))

    assert PRIVATE["HS256"].decode() not in repr(key)
    assert KEYS["HS256"]["k"] not in repr(key)
