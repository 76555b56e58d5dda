"""When things run: one family of triggers in each file. A handler parses, calls the pipeline, replies."""
