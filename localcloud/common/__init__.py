"""What several slices need: clocks, HTTP, certificates, and the seam between Azure and Kubernetes."""
