"""``make demo``: from a push to Ready clusters on the local cloud."""
