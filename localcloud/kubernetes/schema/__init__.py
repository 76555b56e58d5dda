"""The types of Kubernetes objects, published or of a CRD, and what an API server does with them."""
