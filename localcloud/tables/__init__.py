"""Table Storage: the tables of a state in memory, and Azurite for the real client."""
