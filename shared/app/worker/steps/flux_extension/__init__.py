"""Flux as Microsoft's extension: installed, configured and verified through Azure alone."""
