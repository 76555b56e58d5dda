"""The HTTP API: what operators and scripts read, and the actions that they request."""
