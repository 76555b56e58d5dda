"""How a Kubernetes API speaks: REST over TLS, for the Python client and for kubectl."""
