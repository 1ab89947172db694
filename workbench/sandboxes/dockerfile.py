"""Dockerfile."""
