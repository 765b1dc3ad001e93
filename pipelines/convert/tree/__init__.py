"""A page's bytes as arrays of nodes."""
