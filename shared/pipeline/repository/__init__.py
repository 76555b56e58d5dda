"""Reading a commit of the fleet repository and its blobs."""
