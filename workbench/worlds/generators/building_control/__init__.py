"""Closed-loop building control, after Example 2 of Tev A.10, on a thermal simulator of our own in place of EnergyPlus."""
