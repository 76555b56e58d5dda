"""The app of a fleet over HTTP: contexts, sign-in, the client, and what it has recorded."""
