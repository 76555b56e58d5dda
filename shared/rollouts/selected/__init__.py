"""The strategy that a commit selects, by a trailer of its message or a label of its pull request. Pure."""
