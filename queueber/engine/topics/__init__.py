"""Topics: named logs of messages, their groups, and what they share with queues."""
