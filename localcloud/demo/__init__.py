"""``make demo``: the main job, from a push to Ready clusters, on the local cloud."""
