"""Filters that several recipes use."""
