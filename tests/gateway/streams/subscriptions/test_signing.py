"""Key files: what is read, and what is wrong with others."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from queueber.errors import InvalidArgument
from queueber.gateway.settings import GatewaySettings
from queueber.gateway.streams.subscriptions.webhooks.signing import read_keys
from tests.support.webhooks import write_key


def test_the_first_key_signs_and_all_are_published(tmp_path: Path) -> None:
    keys = read_keys(write_key(tmp_path / "keys", 3))

    published = [each["kid"] for each in keys.published()]
    assert len(set(published)) == 3
    assert published[0] == keys.kid
    assert keys.sign(b"x", 17_000).startswith(f"t=17,kid={keys.kid},ed25519=")
    assert not [each for each in keys.published() if "d" in each]


def test_a_wrong_file_is_told(tmp_path: Path) -> None:
    other = tmp_path / "other"
    made = generate_private_key(SECP256R1())
    other.write_bytes(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    empty = tmp_path / "empty"
    empty.write_text("")
    many = write_key(tmp_path / "many", 11)
    spoilt = tmp_path / "spoilt"
    lines = write_key(tmp_path / "right").read_text().splitlines()
    spoilt.write_text("\n".join([lines[0], "AAAA", lines[-1]]))
    for file, why in [
        (tmp_path / "none", "No such file"), (empty, "0 PEM keys"), (many, "11 PEM keys"),
        (other, "not Ed25519"), (spoilt, "cannot be read"),
    ]:  # fmt: skip
        with pytest.raises(InvalidArgument, match=why):
            read_keys(file)


@pytest.mark.parametrize("url", ["streams.example", "ftp://a", "https://a b", "https://a/?b", ""])
def test_a_wrong_public_url_is_told(url: str) -> None:
    with pytest.raises(InvalidArgument, match="public-url"):
        GatewaySettings(public_url=url)
