"""Process death: servers and clients that are killed, stopped or told a wrong time."""
