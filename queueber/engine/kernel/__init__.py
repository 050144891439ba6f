"""The ground every noun stands on: one write door, what is due, when to look."""
