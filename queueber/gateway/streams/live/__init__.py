"""Live readers of streams: one waiting call for all that wait at the same place."""
