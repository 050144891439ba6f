"""Sockets that listen, for processes that are given theirs by another."""

import socket

BACKLOG = 2048
_KEEP_ALIVE = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""After a minute of silence the kernel probes the other end, and gives it up after another."""


def listen(host: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """A socket that listens there; port 0 chooses a free one.

    With `shares_port` several sockets may listen on one port, and the kernel spreads connections
    over them.
    """
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEP_ALIVE.items():
            if hasattr(socket, option):
                listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening


def hold_port(host: str, port: int) -> socket.socket:
    """A socket that has a port and does not listen on it; port 0 chooses a free one.

    Sockets of the same user that share their port may listen there. `OSError` if anybody else has
    it, also somebody who would share it.
    """
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, socket.SOCK_STREAM) as alone:
        alone.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        alone.bind(address)
        address = alone.getsockname()
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        held.bind(address)
    except OSError:
        held.close()
        raise
    return held


def address_of(listening: socket.socket) -> str:
    """`host:port`, with the port that was chosen."""
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
