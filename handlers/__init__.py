"""When things run: one trigger family per file; parse, one call into the pipeline, reply."""
