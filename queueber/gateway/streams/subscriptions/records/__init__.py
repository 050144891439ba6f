"""Records of subscriptions, the places in streams that they have, and where they are kept."""
