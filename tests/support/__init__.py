"""What tests are built with: one module for each kind of value or server. It holds no test."""
