"""SQL over the awaited client: statements are parsed, run one after the other, and answered."""
