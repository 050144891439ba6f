"""The certificate of the gRPC port: that of the HTTP port, read again when that is."""

import ssl

from queueber.errors import QueueberError
from queueber.gateway.log import log
from queueber.gateway.settings import GatewaySettings
from queueber.tls import server_context

_PROTOCOLS = ["h2"]


class Certificates:
    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._present = self._read()

    def _read(self) -> ssl.SSLContext | None:
        """`InvalidArgument` names the option that is wrong."""
        certificate = self._settings.tls_certificate
        if certificate is None:
            return None
        context = server_context(certificate, self._settings.tls_key)
        context.set_alpn_protocols(_PROTOCOLS)
        return context

    def context(self) -> ssl.SSLContext | None:
        """For all connections: each gets the certificate that was read last. None: the port speaks
        plain HTTP/2."""
        listening = self._present
        if listening is not None:
            listening.sni_callback = self._choose
        return listening

    def _choose(self, opened: ssl.SSLObject | ssl.SSLSocket, *_: object) -> None:
        """Called in every handshake."""
        assert self._present is not None, "there is one if there was one"
        opened.context = self._present

    def reload(self) -> None:
        try:
            self._present = self._read()
        except (QueueberError, OSError) as error:
            log.error("reload_failed", what="certificates of gRPC", reason=str(error))
