"""How git is spoken over HTTP and SSH."""
