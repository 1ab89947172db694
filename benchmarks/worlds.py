"""Latent worlds: CPU seconds of one environment with all its gates, rates, a corpus' time, byte identity.

CPU time is that of this process and of its children, so that a busy machine does not spoil it. Gates that look at a generator (role
independence, similarity, six seeds) are run once a generator and remembered, as in a corpus; `generator_gates` tells what they cost.
"""

from __future__ import annotations

import os
import resource
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.worlds import build, catalog, potential
from workbench.worlds.corpus import Plan, build_corpus
from workbench.worlds.gates import environment_gates, generator_gates
from workbench.worlds.replay import CONDITIONS, finish, start

SEEDS = range(11, 14)
CORPUS = int(os.environ.get("BENCH_CORPUS", "60"))  # 1170 for the real thing
TEV_CORPUS = 1170
TRIPLES = int(os.environ.get("BENCH_TRIPLES", "1000"))


def cpu() -> float:
    mine, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return mine.ru_utime + mine.ru_stime + children.ru_utime + children.ru_stime


def run() -> Iterator[dict[str, Any]]:
    names = [name for name in catalog.names() if "unit" in catalog.get(name).spec.tiers]
    yield from _environments(names)
    yield from _rates(names)
    yield from _identity(names)
    yield from _corpus()


def _environments(names: list[str]) -> Iterator[dict[str, Any]]:
    """One unit environment: both solvers, hidden suite, probes, all gates, Phi along the reference."""
    cold, each = [], {}
    for name in names:
        generator = catalog.get(name)
        before = cpu()
        generator_gates(generator, ("unit",))
        cold.append(cpu() - before)
        times = []
        for seed in SEEDS:
            before = cpu()
            environment = build(name, seed, "unit")
            failed = [r for r in environment_gates(generator, environment) if not r.passed]
            [
                potential(generator.nodes, generator.progress.score(environment.truth, tree))
                for _, tree in environment.reference
            ]
            times.append(cpu() - before)
            assert not failed, failed[0]
        each[name] = statistics.median(times)
        yield {"what": "unit environment", "generator": name, "cpu_s": each[name]}
    worst = max(each, key=lambda n: each[n])
    yield {"what": "unit environment, all", "generators": len(each), "median_cpu_s": statistics.median(each.values()),
           "worst": worst, "worst_cpu_s": each[worst], "generator_gates_median_cpu_s": statistics.median(cold)}  # fmt: skip


def _rates(names: list[str]) -> Iterator[dict[str, Any]]:
    """Environments built in a second (with the reference run), and Phi of one complete workspace."""
    before = cpu()
    built = [build(name, seed, "unit") for name in names for seed in SEEDS]
    rate = len(built) / (cpu() - before)
    times = []
    for environment in built:
        progress = catalog.get(environment.spec.name).progress
        started = time.process_time()
        progress.score(environment.truth, environment.output)
        times.append(1000 * (time.process_time() - started))
    yield {
        "what": "build",
        "environments_per_cpu_s": rate,
        "phi_median_ms": statistics.median(times),
        "phi_worst_ms": max(times),
    }
    try:
        import reasoning_gym  # one-step puzzles, for scale; no dependency of ours
    except ImportError:
        return
    dataset = reasoning_gym.create_dataset("basic_arithmetic", size=1000, seed=1)
    before = cpu()
    list(dataset)
    yield {"what": "reasoning-gym basic_arithmetic, for scale", "items_per_cpu_s": 1000 / (cpu() - before)}


def _identity(names: list[str]) -> Iterator[dict[str, Any]]:
    """The same bytes from two processes with different hash seeds, locales and time zones."""
    cells = [(name, tier) for name in names for tier in ("unit", "unit", "unit", "small")]
    triples = [(name, 100 + i, tier) for i in range(TRIPLES) for name, tier in [cells[i % len(cells)]]]
    began = time.monotonic()
    processes = [start(triples, conditions) for conditions in CONDITIONS]
    first, second = (finish(process) for process in processes)
    equal = sum(a == b for a, b in zip(first, second, strict=True))
    yield {"what": "byte identity", "triples": len(triples), "identical": equal, "wall_s": time.monotonic() - began}


def _corpus() -> Iterator[dict[str, Any]]:
    """A corpus over all tiers on two processes; the time of 1,170 is projected unless BENCH_CORPUS=1170."""
    with tempfile.TemporaryDirectory(prefix="bench-corpus-") as folder:
        began = time.monotonic()
        corpus = build_corpus(Path(folder) / "c", Plan(1), jobs=2)  # sketches and generator gates, once
        once = time.monotonic() - began
        began = time.monotonic()
        corpus = build_corpus(Path(folder) / "c", Plan(CORPUS), jobs=2)
        wall = time.monotonic() - began
        found = corpus.coverage()
        seconds = statistics.mean(row["seconds"] for row in corpus.environments)
        yield {
            "what": "corpus", "environments": len(corpus.environments), "rejected": len(corpus.rejected), "once_wall_s": once,
            "wall_s": wall, "mean_cpu_s_each": seconds, "covered": f"{found.covered}/{found.valid}",
            "minutes_for_1170_by_wall": (once + wall / CORPUS * TEV_CORPUS) / 60, "minutes_for_1170_by_cpu_on_2_cores": seconds * TEV_CORPUS / 120,
        }  # fmt: skip


if __name__ == "__main__":
    for row in run():
        print(row, flush=True)
