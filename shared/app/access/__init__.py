"""What worker, sweep, check and API share: the context of a step, limits, leases, ways in, contests."""
