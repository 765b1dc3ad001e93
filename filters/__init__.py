"""Stages that look at one document."""
