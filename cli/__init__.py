"""The ``roadstead`` command. It imports the module of a command when that command runs."""
