"""The local Key Vault: the secrets of one vault, their REST API over TLS, and the port in memory."""
