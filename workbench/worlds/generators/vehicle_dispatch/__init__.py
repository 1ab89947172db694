"""Exact dispatch of delivery vehicles with time windows, with marginal costs as a certificate (domain 9.4)."""
