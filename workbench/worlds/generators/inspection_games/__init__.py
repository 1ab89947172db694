"""Exact equilibria of zero-sum inspection games estimated from trials (domain 9.4)."""
