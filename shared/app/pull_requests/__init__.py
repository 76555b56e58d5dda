"""Plans of pull requests: a comment, and a check or a commit status. Nothing is saved."""
