"""Process death: servers and clients that are killed or stopped, and wrong clocks."""
