"""YAML files as trees of nodes with their places: reading them within bounds, and merging them."""
