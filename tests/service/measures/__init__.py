"""What the server measures."""
