"""The head of the branch: how it is read, and confirmed before it counts."""
