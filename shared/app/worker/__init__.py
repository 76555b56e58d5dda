"""The worker: one message runs the steps that are due, under a lease guard and within Azure's rate limits."""
