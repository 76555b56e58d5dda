"""How objects end: deletes, the garbage collector, evictions."""
