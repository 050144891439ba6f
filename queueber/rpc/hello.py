"""What a client says of itself: not proven, for logs and for lists of leases."""

from typing import Any

from queueber.service.session import Session
from queueber.service.validate.arguments import check_client_name


def take_hello(session: Session, said: Any) -> None:
    name, host, process = said.name, said.host, said.process
    check_client_name("name", name)
    if host:
        check_client_name("host", host)
    session.name = name
    session.process = f"process {process} on {host}" if host and process else ""
