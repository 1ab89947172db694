"""Speed, as ratios of one run: `python -m benchmarks [NAME …]`. Numbers, machines and commands are in benchmarks/README.md."""
