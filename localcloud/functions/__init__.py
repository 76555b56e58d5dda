"""The development host's parts: what the Functions host and its Python worker do, for our triggers."""
