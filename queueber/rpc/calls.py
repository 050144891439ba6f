"""How every method of the schema is run: admitted, counted, its errors turned into faults.

pycapnp calls `<name>_context`. What a method does before it returns its coroutine happens at once,
in the order of arrival; the coroutine ends when the answer may be sent.

A fault crosses the wire as its code, a colon, and a sentence. pycapnp turns an exception of a
server method into text in two ways. One that is raised before the method returns its coroutine
becomes `repr(type):str(value)`; one that comes out of the coroutine becomes a formatted traceback
behind `message = `. A fault's type is made so that both begin with the code and say nothing of our
source files.
"""

from collections.abc import Awaitable, Callable, Iterable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, cast

from capnp import KjException

from queueber.auth.roles import Action
from queueber.clock import seconds
from queueber.errors import FailedPrecondition, InvalidArgument, ResourceExhausted
from queueber.limits import MANY_MAX
from queueber.rpc.rights import Act, Rights
from queueber.service.measures.calls import CANCELLED, MethodMeasure
from queueber.service.service import Service
from queueber.service.session import QueueHandle, Session
from queueber.wire.lists import read_list


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


def early_fault(
    error: Exception, session: Session, method: str = "", measure: MethodMeasure | None = None
) -> Exception:
    """What to raise before the method has returned its coroutine."""
    code, text = session.refused(_readable(error), method)
    if measure is not None:
        measure.failed(code)
    return _fault_type(code)(f" {text}")


def late_fault(
    error: Exception, session: Session, method: str, measure: MethodMeasure
) -> Exception:
    """What to raise out of the method's coroutine."""
    code, text = session.refused(_readable(error), method)
    measure.failed(code)
    return _fault_type(code)(text)


def _readable(error: Exception) -> Exception:
    if isinstance(error, KjException | UnicodeDecodeError):
        return InvalidArgument("the message could not be read; is its schema the right one?")
    return error


_SUFFIX = "_context"

QUEUES_OF_CONNECTION_MAX = 4000
"""Capabilities of queues and topics that one connection holds, about 12 KiB each. Our client keeps
1,000."""


def check_may_hold(session: Session) -> None:
    if session.queues >= QUEUES_OF_CONNECTION_MAX:
        raise ResourceExhausted(
            f"this connection holds {session.queues} queues and topics, the limit; let go of some"
        )


Answer = Awaitable[object]
"""Ends when the answer may be sent. What it returns does not matter."""


Method = Callable[[Any, Any], Answer]

METHOD_NAMES: dict[Method, str] = {}
"""Of each method its name in the schema, with that of its interface: `Queue.add`."""


class Methods:
    """The methods of one capability."""

    interface = "Service"
    """Which interface of the schema they are of."""

    def __init__(self, service: Service, session: Session, rights: Rights | None = None) -> None:
        """Without `rights`, whoever has the capability may call every method of it."""
        self._service = service
        self._session = session
        self._rights = rights
        self._measures = service.measures.calls.by_method

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name, method in vars(cls).items():
            if name.endswith(_SUFFIX):
                _name_method(cls, name.removesuffix(_SUFFIX), method)

    def begin(self, method: Method, context: Any) -> Answer:
        began, measure = seconds(), self._measures.get(method)
        if measure is None:
            measure = self._service.measures.calls.add(method, METHOD_NAMES[method])
        act = None
        try:
            self._session.admit()
            rights = self._rights
            if rights is not None and method.__name__ not in rights.methods:
                act = rights.look(method.__name__, context)
            answer = method(self, context)
        except Exception as error:  # noqa: BLE001  every error becomes a fault with a code
            if act is not None:
                act.ended(error)
            raise early_fault(error, self._session, method.__name__, measure) from None
        if act is not None:
            answer = _audited(answer, act)
        return self._finish(answer, method.__name__, measure, began)

    async def _finish(
        self, answer: Answer, method: str, measure: MethodMeasure, began: float
    ) -> None:
        session = self._session
        session.enter()
        try:
            await answer
            measure.answered(began)
        except Exception as error:  # noqa: BLE001  every error becomes a fault with a code
            raise late_fault(error, session, method, measure) from None
        except BaseException:
            measure.failed(CANCELLED)
            raise
        finally:
            session.leave()

    def _check_right(self, action: Action) -> None:
        """Refuse a call that needs a certain right, which depends on what it says."""
        if self._rights is not None:
            self._rights.check(action)

    def _count(self, context: Any) -> None:
        """An answer was made whose size is not bounded by what was asked."""
        self._session.answers.made(8 * context.results.total_size.word_count)


async def _audited(answer: Answer, act: Act) -> None:
    try:
        await answer
    except Exception as error:
        act.ended(error)
        raise
    act.ended()


def _name_method(methods: type[Methods], name: str, method: Any) -> None:
    METHOD_NAMES[method.__wrapped__] = f"{methods.interface}.{name}"


def add_method(methods: type[Methods], name: str, method: Any) -> None:
    """Add what `call` made to the methods of a capability."""
    setattr(methods, name + _SUFFIX, method)
    _name_method(methods, name, method)


def refuse_methods(
    methods: type[Methods], names: Iterable[str], told: Callable[[Any, str], str]
) -> None:
    """Answer these methods with `FailedPrecondition`; `told` makes its sentence of the capability
    and the name of the method."""
    for name in names:
        add_method(methods, name, _refusal(name, told))


def _refusal(name: str, told: Callable[[Any, str], str]) -> Any:
    def refuse(self: Methods, context: Any) -> Answer:
        raise FailedPrecondition(told(self, name))

    refuse.__name__ = name + _SUFFIX
    return call(refuse)


class QueueMethods(Methods):
    """The methods of one queue, some of them: subclasses have one subject each."""

    interface = "Queue"

    def __init__(self, service: Service, queue: QueueHandle, rights: Rights | None) -> None:
        super().__init__(service, queue.session, rights)
        self._queue = queue


def call(method: Method) -> Method:
    """A method of the schema: what it does at once, then the coroutine that answers."""
    if iscoroutinefunction(method):

        @wraps(method)
        def begin(self: Methods, context: Any) -> Answer:
            return self.begin(method, context)

    else:

        @wraps(method)
        def begin(self: Methods, context: Any) -> Answer:
            answer = self.begin(method, context)
            # All of it has been read; a call that waits must not keep a long message in memory.
            context.release_params()
            return answer

    return begin


async def answer_with(context: Any, field: str, value: Awaitable[object]) -> None:
    """Answer with one field."""
    setattr(context.results, field, await value)


async def respond(context: Any, field: str, value: Awaitable[object]) -> None:
    """Answer with one field of `resp`."""
    setattr(context.results.init("resp"), field, await value)


async def respond_first(context: Any, field: str, values: Awaitable[list[bool]]) -> None:
    setattr(context.results.init("resp"), field, (await values)[0])


async def respond_with(
    context: Any, field: str, value: Awaitable[Any], write: Callable[[Any, Any], None]
) -> None:
    """Answer with a struct that `write` fills."""
    write(context.results.init(field), await value)


def many(field: str, values: Any) -> list[Any]:
    return read_list(field, values, MANY_MAX)
