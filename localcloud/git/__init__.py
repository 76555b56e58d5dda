"""Git servers of the local cloud, whichever host they are of."""
