"""``make demo``: the main job told from a push to Ready clusters, on a cloud on this machine."""
