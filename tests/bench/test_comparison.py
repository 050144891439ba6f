"""What both comparisons do alike: who takes part, and who is left out and why."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.peers.comparison import add_peers_option, prepared
from bench.peers.peer import Unavailable


@dataclass
class Fake:
    name: str
    reason: str = ""
    durability: str = ""
    notes: str = ""
    library: str = ""
    packages: tuple[str, ...] = ()

    def version(self) -> str:
        if self.reason:
            raise Unavailable(self.reason)
        return "1"

    def running(self, folder: Path) -> Any:
        raise NotImplementedError


PEERS = {"a": Fake("A"), "b": Fake("B", "it is gone"), "c": Fake("C")}


def parsed(*arguments: str) -> Any:
    parser = argparse.ArgumentParser()
    add_peers_option(parser, PEERS)
    return parser.parse_args(arguments).peers


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ((), ["A", "C"]),
        (("--peers", "c,a"), ["A", "C"]),
        (("--peers", "c", "a"), ["A", "C"]),
        (("--peers", "c"), ["C"]),
    ],
)
def test_peers_are_those_that_were_named_in_the_order_of_the_tables(
    arguments: tuple[str, ...], names: list[str]
) -> None:
    present, _ = prepared(parsed(*arguments), PEERS)

    assert [peer.name for peer in present] == names


def test_a_peer_that_cannot_be_had_is_left_out_with_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    present, left_out = prepared(parsed("--peers", "a,b"), PEERS)

    assert [peer.name for peer in present] == ["A"]
    assert left_out == {"B": "it is gone"}
    assert capsys.readouterr().err == "B is left out: it is gone\n"


def test_unknown_peers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--peers", "a,x")

    assert "argument --peers: 'x' is none of a, b, c" in capsys.readouterr().err
