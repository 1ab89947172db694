"""Stripped bytecode of a declared virtual machine: derive keys by running it, decrypt the configurations, judge serial numbers."""
