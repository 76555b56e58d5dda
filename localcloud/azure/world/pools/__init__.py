"""Node pools of the local Azure, and their nodes."""
