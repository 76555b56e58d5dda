"""The triggers, one family per file. A handler parses, calls the pipeline and replies."""
