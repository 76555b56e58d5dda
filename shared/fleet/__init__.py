"""What a fleet is: manifests, inheritance, plan. Pure: no I/O, clock, environment or logging."""
