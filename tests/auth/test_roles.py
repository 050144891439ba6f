"""Roles: the table that users rely on, written out a second time."""

from queueber.auth.roles import ACTION_MEANINGS, ROLES, Action

EXPECTED = {
    "producer": "add",
    "worker": "work",
    "reader": "read observe",
    "operator": "read operate observe",
    "loader": "load add read",
    "admin": "add work read operate load administer observe backup",
    "service": "add work read observe",
    "dba": "add work read operate load administer observe",
    "system": "add work read operate load administer observe backup",
    "user": "add",
}


def test_each_role_may_do_what_is_promised() -> None:
    assert {role: set(actions) for role, actions in ROLES.items()} == {
        role: {Action(word) for word in words.split()} for role, words in EXPECTED.items()
    }


def test_every_action_is_explained() -> None:
    assert set(ACTION_MEANINGS) == set(Action)
