"""Keys and values as bytes: how each record is stored."""
