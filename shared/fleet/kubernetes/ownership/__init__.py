"""Who owns which fields of an object, and whether an apply would change any. Pure."""
