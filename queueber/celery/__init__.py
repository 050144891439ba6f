"""Celery on Queueber: a transport of kombu, and a result backend.

A task is an item of the queue of its name, and an unacknowledged task is a leased item. Control
commands and events, which every worker gets, are messages of topics. A result is a topic of its
own, which the server deletes when it expires. `docs/celery.md` is the page for users.
"""
