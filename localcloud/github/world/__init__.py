"""What GitHub does: git repositories on disk or in memory, and what it stores for their commits."""
