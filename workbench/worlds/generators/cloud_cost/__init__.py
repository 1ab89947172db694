"""Cloud cost optimisation with findings that stand only in an image: Example 1 of Tev A.10, rebuilt."""
