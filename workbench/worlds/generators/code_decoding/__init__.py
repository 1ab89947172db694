"""Quantum error-correcting codes and logs of memory experiments: decode every shot by minimum weight, count logical errors exactly."""
