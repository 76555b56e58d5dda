"""What Azure does: the resources, their rules and limits, long-running operations, and faults."""
