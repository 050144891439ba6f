"""What went wrong with TLS, in words that say what to change."""

import ssl

from queueber.errors import QueueberError, Unauthenticated, Unavailable

HANDSHAKE_FAILURES = (ssl.SSLError, ConnectionResetError, ConnectionAbortedError, BrokenPipeError)
"""Other errors of a new connection mean that nobody is there."""

_X509_EXPIRED, _X509_NOT_YET = 10, 9
_X509_WRONG_NAMES = (62, 64)
"""Codes of OpenSSL for what is wrong with a certificate."""

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")
"""What the other side sent is no TLS."""


def handshake_failure(address: str, server_name: str, error: OSError) -> QueueberError:
    """The handshake has failed. The client retries what may be different in a moment."""
    start = f"cannot connect to {address} with TLS"
    match error:
        case ssl.SSLCertVerificationError():
            return Unauthenticated(f"{start}: {_untrusted(server_name, error)}")
        case ssl.SSLError(reason=reason) if reason in _NO_TLS:
            return Unauthenticated(
                f"{start}: the server there does not speak TLS; connect without TLS, or check the "
                "address"
            )
        case ssl.SSLError(reason=str() as reason) if "ALERT" in reason:
            return Unauthenticated(f"{start}: the server refused: {_alert(reason)}")
        case ssl.SSLError():
            return Unauthenticated(f"{start}: {error.reason or error}")
    return Unavailable(
        f"{start}: the server hung up during the handshake; it may not speak TLS, or it is "
        "overloaded"
    )


def hung_up(address: str, *, is_tls: bool, failure: BaseException | None) -> QueueberError:
    """The connection was lost before the server answered the first call."""
    if isinstance(failure, ssl.SSLError) and "ALERT" in (failure.reason or ""):
        return Unauthenticated(
            f"the server at {address} refused the connection: {_alert(str(failure.reason))}"
        )
    if is_tls:
        hint = "it may want a client certificate (certificate, or --tls-certificate)"
    else:
        hint = "if it speaks TLS, connect with tls=True or --tls"
    return Unavailable(f"the server at {address} closed the connection before it answered; {hint}")


def _untrusted(server_name: str, error: ssl.SSLCertVerificationError) -> str:
    code = error.verify_code
    if code == _X509_EXPIRED:
        return "the server's certificate has expired; renew it, and send SIGHUP to the server"
    if code == _X509_NOT_YET:
        return "the server's certificate is not valid yet; check the clock of this machine"
    if code in _X509_WRONG_NAMES:
        return (
            f"the server's certificate is not for {server_name!r}; connect to a name that it is "
            "for, or give that as the server name"
        )
    return (
        "the server's certificate is not from an authority that this client trusts "
        f"({error.verify_message}); give the file with the authority's certificate as ca, or with "
        "--tls-ca"
    )


def _alert(reason: str) -> str:
    words = reason.lower().replace("_", " ")
    text = words[words.index("alert") + len("alert ") :]
    if "certificate" in text or text == "unknown ca":
        return f"{text}; it wants a client certificate of an authority that it trusts"
    return text
