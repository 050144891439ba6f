"""The server's engine, service and sweeper on one thread, in virtual time, crashed at any write.

    clients ──▶ network (delays, cuts) ──▶ server ──▶ disk (written, synced, full)
       │                                     ▲           │
       └──▶ history ──▶ checker              └─ restart ─┘ some of what was not synced

One seed decides everything: who does what and when, how long messages and syncs take, where the
server crashes and how much of what it had not synced is lost. The same seed is the same history.
"""
