"""The worlds behind their real wire protocols."""
