"""How an error crosses the wire: its code, a colon, and a sentence.

pycapnp turns an exception of a server method into text in two ways. One that is raised before the
method returns its coroutine becomes `repr(type):str(value)`; one that comes out of the coroutine
becomes a formatted traceback behind `message = `. A fault's type is made so that both begin with
the code and say nothing of our source files.
"""

from typing import cast

from capnp import KjException

from queueber.errors import InvalidArgument
from queueber.service.session import Session


class _FaultType(type):
    def __repr__(cls) -> str:
        return cls.__name__


_types: dict[str, type[Exception]] = {}


def _fault_type(code: str) -> type[Exception]:
    if code not in _types:
        # Exceptions of builtins are formatted without a module, and without a traceback when they
        # have none to show.
        made = _FaultType(code, (Exception,), {"__module__": "builtins", "__traceback__": None})
        _types[code] = cast(type[Exception], made)
    return _types[code]


def early_fault(error: Exception, session: Session) -> Exception:
    """What to raise before the method has returned its coroutine."""
    code, text = session.refused(_readable(error))
    return _fault_type(code)(f" {text}")


def late_fault(error: Exception, session: Session) -> Exception:
    """What to raise out of the method's coroutine."""
    code, text = session.refused(_readable(error))
    return _fault_type(code)(text)


def _readable(error: Exception) -> Exception:
    if isinstance(error, KjException | UnicodeDecodeError):
        return InvalidArgument("the message could not be read; is its schema the right one?")
    return error
