"""The right that each route needs: a decision for every one that asks the server."""

from queueber.auth.roles import Action

Needed = tuple[frozenset[Action], ...]
"""Of each set one action is enough; all sets are needed."""

NOTHING: Needed = ()
_ADD = frozenset({Action.ADD})
_WORK = frozenset({Action.WORK})
_READ = frozenset({Action.READ})
_LOOK = frozenset({Action.READ, Action.WORK})
_OPERATE = frozenset({Action.OPERATE})
_ADMINISTER = frozenset({Action.ADMINISTER})

_Q = "/v1/queues/{queue}"
_T = "/v1/topics/{topic}"
_SCHEDULE = "/v1/schedules/{schedule}"
_S = "/v1/stream/{path*}"
_SUBSCRIPTION = "/v1/stream/__ds/subscriptions/{subscription}"
_G = "/v1/topics/{topic}/groups/{group}"

STREAMS = {("GET", "/live"), ("GET", f"{_T}/tail")}
"""Their answers do not end; their own tests read them."""

RIGHTS: dict[tuple[str, str], Needed] = {
    ("GET", "/v1"): NOTHING,
    ("GET", "/v1/whoami"): NOTHING,
    # These show only what the caller may read.
    ("GET", "/v1/queues"): NOTHING,
    ("GET", "/live"): NOTHING,
    ("POST", "/live/histories"): NOTHING,
    ("GET", f"{_Q}/history"): (_LOOK,),
    ("GET", _Q): (_LOOK,),
    ("PUT", _Q): (_ADMINISTER,),
    ("PATCH", _Q): (_LOOK, _ADMINISTER),
    ("DELETE", _Q): (_ADMINISTER,),
    ("POST", f"{_Q}/items"): (_ADD,),
    ("GET", f"{_Q}/items"): (_READ,),
    ("GET", f"{_Q}/items/{{id}}"): (_READ,),
    ("GET", f"{_Q}/keys/{{key}}"): (_READ,),
    ("POST", f"{_Q}/poll"): (_WORK,),
    ("POST", f"{_Q}/complete"): (_WORK,),
    ("POST", f"{_Q}/fail"): (_WORK,),
    ("POST", f"{_Q}/release"): (_WORK,),
    ("POST", f"{_Q}/remove"): (_WORK,),
    ("POST", f"{_Q}/extend"): (_WORK,),
    ("GET", f"{_Q}/leases"): (_READ,),
    ("GET", f"{_Q}/batches"): (_READ,),
    ("GET", f"{_Q}/batches/{{batch}}"): (_READ,),
    ("DELETE", f"{_Q}/batches/{{batch}}"): (_OPERATE,),
    ("POST", f"{_Q}/forget-batches"): (_OPERATE,),
    ("PUT", f"{_Q}/batches/{{batch}}/callback"): (_ADD,),
    ("GET", f"{_Q}/batches/{{batch}}/callback"): (_READ,),
    ("GET", f"{_Q}/results"): (_READ,),
    ("GET", f"{_Q}/results/readers"): (_READ,),
    ("PUT", f"{_Q}/results/readers/{{reader}}"): (_WORK,),
    ("DELETE", f"{_Q}/results/readers/{{reader}}"): (_OPERATE,),
    ("POST", f"{_Q}/cancel"): (_OPERATE,),
    ("POST", f"{_Q}/reschedule"): (_OPERATE,),
    # It asks how many there are first, so that it ends though others add.
    ("POST", f"{_Q}/purge"): (_LOOK, _OPERATE),
    ("POST", f"{_Q}/redrive"): (_LOOK, _OPERATE),
    ("POST", f"{_Q}/pause"): (_OPERATE,),
    ("POST", f"{_Q}/resume"): (_OPERATE,),
    # It shows only what the caller may read.
    ("GET", "/v1/schedules"): NOTHING,
    ("GET", _SCHEDULE): (_READ,),
    ("PUT", _SCHEDULE): (_ADMINISTER,),
    ("DELETE", _SCHEDULE): (_ADMINISTER,),
    ("POST", f"{_SCHEDULE}/pause"): (_OPERATE,),
    ("POST", f"{_SCHEDULE}/resume"): (_OPERATE,),
    ("POST", f"{_SCHEDULE}/run"): (_OPERATE,),
    ("GET", "/v1/topics"): NOTHING,
    # Each statement has rights of its own; that of the example needs none.
    ("POST", "/v1/api/sql"): NOTHING,
    ("GET", f"{_T}/history"): (_READ,),
    ("GET", _T): (_READ,),
    ("PUT", _T): (_ADMINISTER,),
    ("PATCH", _T): (_READ, _ADMINISTER),
    ("DELETE", _T): (_ADMINISTER,),
    ("POST", f"{_T}/messages"): (_ADD,),
    ("POST", "/v1/publish"): (_ADD,),
    ("POST", "/v1/together"): (_ADD, _WORK),
    ("GET", f"{_T}/messages"): (_READ,),
    ("GET", f"{_T}/find"): (_READ,),
    ("GET", f"{_T}/tail"): (_READ,),
    ("POST", f"{_T}/trim"): (_OPERATE,),
    ("POST", f"{_T}/close"): (_ADMINISTER,),
    ("POST", f"{_T}/fork"): (_ADMINISTER,),
    ("GET", f"{_T}/sources"): (_READ,),
    ("POST", f"{_T}/sources"): (_ADMINISTER,),
    ("DELETE", f"{_T}/sources/{{queue}}"): (_ADMINISTER,),
    ("GET", f"{_T}/groups"): (_READ,),
    ("GET", _G): (_READ,),
    ("PUT", _G): (_WORK,),
    ("DELETE", _G): (_OPERATE,),
    ("POST", f"{_G}/reset"): (_OPERATE,),
    ("POST", f"{_G}/pause"): (_OPERATE,),
    ("POST", f"{_G}/resume"): (_OPERATE,),
    ("POST", f"{_G}/poll"): (_WORK,),
    ("POST", f"{_G}/ack"): (_WORK,),
    ("POST", f"{_G}/fail"): (_WORK,),
    ("POST", f"{_G}/release"): (_WORK,),
    ("POST", f"{_G}/extend"): (_WORK,),
    ("GET", f"{_G}/dead"): (_READ,),
    # It looks at what is there, and says whether it is what was asked for.
    ("PUT", _S): (_READ, _ADMINISTER),
    ("POST", _S): (_ADD,),
    ("GET", _S): (_READ,),
    ("HEAD", _S): (_READ,),
    ("DELETE", _S): (_ADMINISTER,),
    # It shows only what the caller may read.
    ("GET", "/v1/streams"): NOTHING,
    ("GET", f"{_S}/_details"): (_READ,),
    ("GET", f"{_S}/_records"): (_READ,),
    ("GET", f"{_S}/_profile"): (_READ,),
    ("GET", f"{_S}/_schema"): (_READ,),
    # It looks at the schema in force, and at the messages that a first one must fit.
    ("PUT", f"{_S}/_schema"): (_READ, _ADMINISTER),
    ("POST", f"{_G}/redrive"): (_OPERATE,),
    # A subscription is a topic. Its creator may read its streams, and write to its wake stream.
    ("PUT", _SUBSCRIPTION): (_READ, _ADD, _ADMINISTER),
    ("GET", _SUBSCRIPTION): (_READ,),
    ("DELETE", _SUBSCRIPTION): (_ADMINISTER,),
    ("POST", f"{_SUBSCRIPTION}/streams"): (_READ, _ADD),
    ("DELETE", f"{_SUBSCRIPTION}/streams/{{path*}}"): (_READ, _ADD),
    ("POST", f"{_SUBSCRIPTION}/claim"): (_READ, _ADD),
    ("POST", "/v1/api/topics/consume"): (_WORK,),
    ("POST", "/api/topics/consume"): (_WORK,),
    ("POST", "/v1/api/topics/ack"): (_WORK,),
    ("POST", "/api/topics/ack"): (_WORK,),
    ("POST", "/v1/api/topics/latest-offsets"): (_READ,),
    ("GET", "/v1/api/auth/me"): NOTHING,
}


def may(actions: frozenset[Action], needed: Needed) -> bool:
    return all(actions & some for some in needed)
