"""Manifests of an old cluster, layered and drifted, migrated under policy."""
