"""The spec of a cluster: its properties as Azure names them, one part a file."""
