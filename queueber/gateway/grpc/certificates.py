"""The certificate of the gRPC port: that of the HTTP port, read again when that is."""

from collections.abc import Callable
from typing import Self, cast

import grpc

from queueber.errors import QueueberError
from queueber.gateway.log import log
from queueber.gateway.settings import GatewaySettings
from queueber.tls import server_context


class Certificates:
    def __init__(self, settings: GatewaySettings) -> None:
        self._settings = settings
        self._is_new = False
        self._present = self._read()

    @classmethod
    def of(cls, settings: GatewaySettings) -> Self | None:
        """None: the port speaks plain HTTP/2."""
        return None if settings.tls_certificate is None else cls(settings)

    def _read(self) -> tuple[bytes, bytes]:
        """Key and certificates. `InvalidArgument` names the option that is wrong."""
        certificate, key = self._settings.tls_certificate, self._settings.tls_key
        assert certificate is not None, "there is none without"
        server_context(certificate, key)
        chain = certificate.read_bytes()
        return (chain if key is None else key.read_bytes()), chain

    def credentials(self) -> grpc.ServerCredentials:
        first = grpc.ssl_server_certificate_configuration([self._present])
        # The types do not know that None may be answered.
        changed = cast("Callable[[], grpc.ServerCertificateConfiguration]", self._changed)
        return grpc.dynamic_ssl_server_credentials(first, changed)

    def _changed(self) -> grpc.ServerCertificateConfiguration | None:
        """Asked in every handshake; None: as before."""
        if not self._is_new:
            return None
        self._is_new = False
        return grpc.ssl_server_certificate_configuration([self._present])

    def reload(self) -> None:
        try:
            self._present = self._read()
        except (QueueberError, OSError) as error:
            log.error("reload_failed", what="certificates of gRPC", reason=str(error))
        else:
            self._is_new = True
