"""The local cloud: what Roadstead runs on, on one machine and without an account.

Each service is a slice: ``world/`` is what the service does, in memory and on an injected clock; ``wire/`` is
how it speaks, to the real client libraries.
"""
