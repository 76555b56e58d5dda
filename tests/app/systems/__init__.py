"""The teams' systems, from a commit to the objects on the clusters, and their removal."""
