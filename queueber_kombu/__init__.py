"""Makes `queueber://` an address of kombu, in every program that has Queueber installed.

Kombu has no entry points for transports. It loads those of serializers whenever it is imported, and
this is one of them: loading it adds a line to kombu's table of transports. It imports nothing of
Queueber, so programs with another broker pay nothing. The serializer itself refuses to be used.
"""

from typing import NoReturn

from kombu.transport import TRANSPORT_ALIASES

TRANSPORT_ALIASES.setdefault("queueber", "queueber.celery.transport:Transport")


def _refuse(data: object) -> NoReturn:
    raise NotImplementedError("queueber is a transport, no serializer; choose json, for instance")


SERIALIZER = (_refuse, _refuse, "application/x-queueber-no-serializer", "utf-8")
"""What kombu registers: how to encode and decode, the content type, the encoding."""
