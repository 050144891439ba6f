"""Certificates for tests, from an authority of their own that nobody else trusts."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import trustme

from queueber.tls import TlsOptions

HOSTS = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class Authority:
    folder: Path
    ca: trustme.CA

    @property
    def ca_file(self) -> Path:
        file = self.folder / "ca.pem"
        self.ca.cert_pem.write_to_path(str(file))
        return file

    def issue(self, name: str, *hosts: str, common_name: str | None = None) -> Path:
        """A file of that name, with a certificate and its key."""
        file = self.folder / f"{name}.pem"
        issued = self.ca.issue_cert(*hosts, common_name=common_name)
        issued.private_key_and_cert_chain_pem.write_to_path(str(file))
        return file

    def issue_expired(self, name: str) -> Path:
        file = self.folder / f"{name}.pem"
        began = datetime.now(UTC) - timedelta(days=10)
        issued = self.ca.issue_cert(*HOSTS, not_before=began, not_after=began + timedelta(days=1))
        issued.private_key_and_cert_chain_pem.write_to_path(str(file))
        return file

    def server_options(self) -> tuple[str, ...]:
        """Flags of a server with TLS."""
        return ("--tls-certificate", str(self.issue("server", *HOSTS)))

    def trusted(self) -> TlsOptions:
        """Of a client that trusts the authority."""
        return TlsOptions(ca=self.ca_file)


def new_authority(folder: Path) -> Authority:
    folder.mkdir(exist_ok=True)
    return Authority(folder, trustme.CA())
