"""Whether the gRPC door holds the goals that Sluice has published."""
