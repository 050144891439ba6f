"""Run h2spec, a public suite of the rules of HTTP/2, against the gRPC port of a gateway.

The exit code is 0 only if every test of the suite passed. Go builds the suite once.
"""

import subprocess
import sys

import click

from bench.peers.go_programs import find_or_build
from bench.peers.peer import Unavailable
from queueber.config import split_address
from queueber.testing import running_server
from tests.support.grpc import running_grpc, wait_listening

_MODULE, _VERSION = "github.com/summerwind/h2spec/cmd/h2spec", "v2.2.1+incompatible"
_SUITE_SECONDS_MAX = 300.0


@click.command()
@click.option("--only", default="", help="A part of the suite, such as http2/6.9 or hpack.")
def main(only: str) -> None:
    """Run the conformance suite of HTTP/2."""
    try:
        suite = find_or_build("h2spec", _MODULE, _VERSION)
    except Unavailable as error:
        raise click.ClickException(str(error)) from None
    with running_server() as server, running_grpc(server.address) as (_, address):
        wait_listening(address)
        host, port = split_address(address)
        command = [str(suite), *([only] if only else []), "-h", host, "-p", str(port)]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SUITE_SECONDS_MAX, check=False
        )
    click.echo(done.stdout)
    sys.exit(done.returncode)


if __name__ == "__main__":
    main()
