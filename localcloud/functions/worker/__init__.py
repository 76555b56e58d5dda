"""The Python worker: the functions of an app, found and called in this process or by Microsoft's library."""
