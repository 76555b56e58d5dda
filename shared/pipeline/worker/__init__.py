"""The worker: one message runs one step, under a lease guard and within Azure's rate limits."""
