"""The steps of a delete, and whether it may begin: git still asks for it, and nobody shares the group."""
