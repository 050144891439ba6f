"""JSON Schemas of streams: checked when they are set, kept by the server, used by appends."""
