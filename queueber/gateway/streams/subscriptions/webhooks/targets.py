"""Where webhooks may go: public addresses alone.

Whoever creates a subscription has the gateway send requests. So that nobody reaches what only the
gateway can reach, a name is resolved, each of its addresses is checked, and the connection is made
to the address that was checked: what the name points to later does not matter.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from queueber.gateway.streams.subscriptions.refusals import Refusal, refusal

URL_BYTES_MAX = 2_048
_RESOLVE_SECONDS_MAX = 5.0
_HTTPS_PORT = 443
_PORTS_OF_SERVICES = 1024
"""Ports below are those of mail, names, shells: of these only 443 speaks HTTPS to the public."""

Address = IPv4Address | IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
"""Takes a name and a port; returns addresses."""

_REFUSED = tuple(
    ip_network(each)
    for each in (
        # IPv4: the special-purpose registry of IANA, multicast, and what is reserved.
        "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
        "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
        "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
        "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
        # IPv6: all but 2000::/3, and of that what is special. Addresses that have one of IPv4 in
        # them (mapped, compatible, translated, 6to4, Teredo) are refused whatever it is.
        "::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16",
        "2620:4f:8000::/48", "3fff::/20",
    )
)  # fmt: skip

_HOST = re.compile(r"(?=.{1,253}\.?$)([a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_-]{1,63}\.?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LOOPBACK_NAME = "localhost"


@dataclass(frozen=True, slots=True)
class Target:
    """A webhook's URL in parts."""

    is_https: bool
    host: str
    """A name, or an address without brackets."""
    port: int
    path: str
    """With the query."""
    is_loopback: bool
    """Whether it says that it is this machine."""

    @property
    def host_header(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = _HTTPS_PORT if self.is_https else 80
        return host if self.port == usual else f"{host}:{self.port}"


def to_target(url: str, *, allows_loopback: bool) -> Target:
    """The parts of a URL that may be a webhook's, as far as its text shows it.

    Raises a `Refusal` with `WEBHOOK_URL_REJECTED`.
    """
    if len(url) > URL_BYTES_MAX:
        raise _rejected(f"it has {len(url)} characters; the limit is {URL_BYTES_MAX}")
    if not url.isascii() or not url.isprintable() or set(url) & set(' \\"<>^`{|}'):
        raise _rejected("it has characters that a URL cannot have; percent-encode them")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _rejected("it is not a URL") from None
    if parts.scheme not in ("https", "http"):
        raise _rejected(f"{parts.scheme or 'no scheme'}: write https://")
    if "@" in parts.netloc:
        raise _rejected("it has a user or a password; the signature says who sent the request")
    if "%" in parts.netloc:
        raise _rejected("the host has a zone, or is percent-encoded")
    if parts.fragment or url.endswith("#"):
        raise _rejected("it has a fragment, which is not sent")
    host = (parts.hostname or "").rstrip(".")
    is_loopback = _says_loopback(_checked_host(host))
    if is_loopback and not allows_loopback:
        raise _rejected("this machine itself; only a gateway with --webhook-loopback sends to it")
    if parts.scheme == "http" and not is_loopback:
        raise _rejected("http is for 127.0.0.1 and localhost alone; write https://")
    return Target(
        is_https=parts.scheme == "https",
        host=host,
        port=_checked_port(port, parts.scheme, parts.netloc, is_loopback=is_loopback),
        path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        is_loopback=is_loopback,
    )


def _checked_host(host: str) -> str:
    address = _to_address(host)
    if address is not None:
        if not address.is_loopback or _is_mapped(address):
            check_address(address)
        return host
    if ":" in host or not _HOST.fullmatch(host):
        raise _rejected("it names no host, or not as DNS writes it")
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        # Some resolvers read 2130706433, 0177.1 and 0x7f.0.0.1 as addresses.
        raise _rejected(f"{host}: write an address as four numbers, such as 192.0.2.1")
    return host


def _checked_port(port: int | None, scheme: str, netloc: str, *, is_loopback: bool) -> int:
    if port is None:
        if netloc.endswith(":"):
            raise _rejected("the port is missing")
        return _HTTPS_PORT if scheme == "https" else 80
    if port == 0 or (port < _PORTS_OF_SERVICES and port != _HTTPS_PORT and not is_loopback):
        raise _rejected(f"port {port}: it must be 443, or {_PORTS_OF_SERVICES} or more")
    return port


def _says_loopback(host: str) -> bool:
    address = _to_address(host)
    if address is not None:
        return address.is_loopback and not _is_mapped(address)
    return host == _LOOPBACK_NAME or host.endswith(f".{_LOOPBACK_NAME}")


def _to_address(text: str) -> Address | None:
    try:
        return ip_address(text)
    except ValueError:
        return None


def _is_mapped(address: Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def check_address(address: Address) -> None:
    """Raise a `Refusal` unless the address is a public one."""
    zone = getattr(address, "scope_id", None)
    if (
        zone is not None
        or not address.is_global
        or any(address.version == each.version and address in each for each in _REFUSED)
    ):
        raise _rejected(f"{address} is not a public address")


async def resolve(target: Target, resolver: Resolver) -> str:
    """The address to connect to. Raises a `Refusal` unless each address of the name is public, or
    this machine's if the URL says so."""
    try:
        found = await asyncio.wait_for(resolver(target.host, target.port), _RESOLVE_SECONDS_MAX)
    except (OSError, UnicodeError, TimeoutError) as error:
        raise OSError(f"the name {target.host} cannot be resolved: {error}") from None
    if not found:
        raise OSError(f"the name {target.host} has no address")
    for each in found:
        address = ip_address(each)
        if not target.is_loopback:
            check_address(address)
        elif not address.is_loopback or _is_mapped(address):
            raise _rejected(f"{target.host} is {address}, which is not this machine")
    return found[0]


async def ask_system(host: str, port: int) -> list[str]:
    """The addresses of a name, as the system finds them."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


def _rejected(why: str) -> Refusal:
    return refusal("WEBHOOK_URL_REJECTED", f"webhook.url: {why}")
