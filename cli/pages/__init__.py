"""Pages of docs/ that are generated from the code: the reference of manifests, and the errors."""
