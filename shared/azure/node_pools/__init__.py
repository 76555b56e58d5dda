"""Node pools in Azure: bodies, replacement, and rollback."""
