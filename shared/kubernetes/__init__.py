"""What Roadstead applies to a cluster, and what the objects of a cluster show. Pure."""
