"""Tokens, plan and feed."""
