"""Whether a cluster is ready for an upgrade: what is read of it, and what of that blocks. Pure."""
