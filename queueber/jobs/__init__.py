"""Kinds of jobs: functions with typed arguments, put into queues and worked on by name.

app.enqueue(resize, width=200) ─▶ arguments checked ─▶ item {"job": "resize", "args": {…}}
app.worker() ─▶ Worker ─▶ kind of each item ─▶ arguments decoded ─▶ the function
handle.result() ◀─ result decoded ◀─ the queue's log of results
"""
