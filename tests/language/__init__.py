"""From the files of a commit to resolved clusters, or to problems with their places."""
