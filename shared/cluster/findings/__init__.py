"""What was read of a cluster: conditions, health, readiness for an upgrade."""
