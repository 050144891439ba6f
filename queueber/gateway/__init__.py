"""HTTP beside the server: a process of its own, built on the public awaited client.

    HTTP ──▶ protocol ──▶ app ──▶ route ──▶ awaited client ──▶ server

The gateway translates and waits. It has no rule of queues or callers of its own: the server
decides who may do what. It keeps nothing that matters, so any number of them may run, and one that
falls takes nothing with it.
"""
