"""Table Storage: the State port in memory, and Azurite for the real client."""
