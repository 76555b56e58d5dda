"""What a process keeps for its invocations, and how it does several things at a time."""
