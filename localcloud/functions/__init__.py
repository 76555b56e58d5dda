"""The development host: the part of the Functions host and of its Python worker that our triggers need."""
