"""What operators see: the fleet, clusters, plans, drift, and why."""
