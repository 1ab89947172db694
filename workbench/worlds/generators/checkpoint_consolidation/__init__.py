"""A distributed training checkpoint, its shards partly stale or damaged, consolidated to one file (Tev A.4, domain 9.3)."""
