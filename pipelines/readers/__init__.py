"""Stored bytes to records, with every byte accounted for."""
