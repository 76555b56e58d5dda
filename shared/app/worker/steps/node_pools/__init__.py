"""The step of node pools, with their drains and their rollback."""
