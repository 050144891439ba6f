"""Which requests share a client."""

from itertools import combinations

from queueber.gateway.clients import _key
from queueber.model import Credential


def test_no_two_credentials_share_a_client() -> None:
    credentials = [
        None,
        Credential(),
        Credential(token="a"),
        Credential(token="a\0b"),
        Credential(user="a", password="b"),
        Credential(user="a\0b", password="c"),
        Credential(user="a", password="b\0c"),
        Credential(token="\0a\0b"),
        Credential(token="', 'a', 'b"),
    ]
    assert [pair for pair in combinations(credentials, 2) if _key(pair[0]) == _key(pair[1])] == []
    assert _key(Credential(user="a", password="b")) == _key(Credential(user="a", password="b"))
