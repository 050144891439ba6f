"""Cap'n Proto messages: their codecs, and the streams that carry them."""
