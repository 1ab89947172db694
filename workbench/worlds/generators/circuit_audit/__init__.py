"""Transpiled Clifford circuits audited against their sources, a device and its calibrations, in exact arithmetic."""
