"""The engine: records, messages, leases, recipes, outcomes, failures, rate limits, diagnosis. Pure."""
