"""The engine: records, messages, leases, recipes, outcomes, retries, errors, rate limits, diagnosis. Pure."""
