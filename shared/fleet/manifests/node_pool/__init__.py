"""A node pool, and the parts of its properties."""
