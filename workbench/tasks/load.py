"""Reading a task directory. Nothing is executed, no link is followed out of it, and every fault is found, not the first.

What Harbor requires and what we require differ in these points only (docs/tasks.md says why): [environment] must be
written out, scripts must carry their x bit, a reference solution must be there, paths and sizes are bounded.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from workbench.tasks import Fault, Step, Task, TaskError
from workbench.tasks.config import read_config
from workbench.tasks.digest import digest
from workbench.tasks.files import MAX_BYTES, TaskFiles
from workbench.tasks.toml_lines import where


def load(path: str | Path, *, max_bytes: int = MAX_BYTES, need_solution: bool = True) -> Task:
    """Read a task directory.

    max_bytes: the most that its files may have in all, in bytes, counted before anything is read. need_solution: a
    missing solution/solve.sh is a fault (held-out tasks may come without). Raises TaskError with all faults.
    """
    root = Path(path).absolute()
    if not root.is_dir():
        raise TaskError(
            root, [Fault("missing-file", "no such folder" if not root.exists() else "not a folder; a task is one")]
        )
    files = TaskFiles(root, max_bytes)
    if files.broken:
        raise TaskError(root, files.faults)
    config, raw, text = _config(files)
    steps = _steps(files, config, raw, need_solution)
    _environment(files, config)
    if config is None or files.faults:
        raise TaskError(root, files.faults)
    _unsupported(files, config, text)
    try:
        seal = digest(root, files.entries) if not files.faults else ""
    except (OSError, ValueError) as error:
        files.fault("unsafe-path", f"cannot be read: {error}")
    if files.faults:
        raise TaskError(root, files.faults)
    return _task(root, config, steps, seal)


def _config(files: TaskFiles) -> tuple[Any | None, dict[str, Any], str]:
    data = files.read("task.toml", "it says how long, with what and on which network the task runs")
    if data is None:
        return None, {}, ""
    config, raw, faults = read_config(data)
    files.faults.extend(faults)
    if "environment" not in raw and not any(fault.kind == "bad-toml" for fault in faults):
        files.fault(
            "missing-section",
            "no [environment] section: without one Harbor gives the task the public network and no limits; write at least "
            '[environment] and network_mode = "no-network"',
            "task.toml",
        )
    return config, raw, data.decode("utf-8", "replace")


def _steps(files: TaskFiles, config: Any, raw: dict[str, Any], need_solution: bool) -> list[Step]:
    """Every step with its files checked. Before a valid config is there, its names still come from the raw TOML."""
    tables = raw.get("steps")
    tables = [t for t in tables if isinstance(t, dict)] if isinstance(tables, list) else []
    names = [str(table.get("name", "")) for table in tables]
    if not names:
        if files.has_folder("steps") and not files.has("instruction.md"):
            files.fault(
                "missing-section",
                "there is a steps/ folder but no [[steps]] section; name each step in one",
                "task.toml",
            )
            return []
        return [_step(files, config, "", None, need_solution)]
    parts = config.steps if config is not None else [None] * len(names)
    return [
        _step(files, config, n, part, need_solution) for n, part in zip(names, parts, strict=True) if n and "/" not in n
    ]


def _step(files: TaskFiles, config: Any, name: str, part: Any, need_solution: bool) -> Step:
    base = f"steps/{name}/" if name else ""
    own_tests = name and files.has_folder(base + "tests")
    instruction = files.text(base + "instruction.md", "write down what the agent has to do")
    if not _baked_tests(config, part):
        script = (
            base + "tests/test.sh"
            if not name or files.has(base + "tests/test.sh") or not files.has("tests/test.sh")
            else "tests/test.sh"
        )
        files.script(script, "it grades the task: copy the fraction verifier there (docs/tasks.md)")
    solution = base if not name or files.has_folder(base + "solution") or not files.has_folder("solution") else ""
    has_solution = files.has_folder(solution + "solution")
    if need_solution or has_solution:
        files.script(
            solution + "solution/solve.sh", "without a reference solution nothing shows that the task can be solved"
        )
    agent_timeout, verifier_timeout = _timeouts(config, part)
    return Step(
        name=name,
        instruction=instruction,
        tests=files.root / (base if own_tests else "") / "tests",
        solution=files.root / solution / "solution" if has_solution else None,
        min_reward=_min_reward(files, part),
        agent_timeout=agent_timeout,
        verifier_timeout=verifier_timeout,
    )


def _timeouts(config: Any, part: Any) -> tuple[float | None, float]:
    """(agent's, verifier's) seconds of a step, which fall back to the task's."""
    if config is None:
        return None, 600.0
    agent, verifier = config.agent.timeout_sec, config.verifier.timeout_sec
    if part is not None and part.agent.timeout_sec is not None:
        agent = part.agent.timeout_sec
    if part is not None and "timeout_sec" in part.verifier.model_fields_set:
        verifier = part.verifier.timeout_sec
    return agent, verifier


def _min_reward(files: TaskFiles, part: Any) -> float | None:
    value = part.min_reward if part is not None else None
    if isinstance(value, dict):
        if set(value) != {"reward"}:
            files.fault(
                "wrong-type",
                f"steps {part.name}: min_reward may gate on 'reward' only, got {sorted(value)}",
                "task.toml",
            )
            return None
        value = value["reward"]
    return value


def _baked_tests(config: Any, part: Any) -> bool:
    """Harbor: a separate verifier with an image of its own carries its tests inside."""
    verifiers = [v for v in (part.verifier if part else None, config.verifier if config else None) if v]
    return any(v.environment is not None and v.environment.docker_image for v in verifiers)


def _environment(files: TaskFiles, config: Any) -> None:
    image = config.environment.docker_image if config is not None else None
    if not image:
        files.read(
            "environment/Dockerfile", 'write one that starts with FROM, or set docker_image = "…" in [environment]'
        )


def _unsupported(files: TaskFiles, config: Any, text: str) -> None:
    """What Harbor allows and one sandbox a task cannot do."""
    from harbor.models.task.verifier_mode import task_has_any_separate_verifier, task_has_any_shared_verifier

    if config.environment.os.value != "linux":
        files.fault(
            "lint", "environment.os is windows: the workbench runs Linux tasks only", where(text, ("environment", "os"))
        )
    if task_has_any_separate_verifier(config) and task_has_any_shared_verifier(config):
        files.fault("lint", "some steps have a separate verifier and some share the agent's: use one mode", "task.toml")
    for index, step in enumerate(config.steps or []):
        if step.agent.network_mode is not None and step.agent.network_mode != config.agent.network_mode:
            message = f"steps[{index}].agent.network_mode: one sandbox serves all steps; set it once in [agent]"
            files.fault("lint", message, where(text, ("steps", index, "agent", "network_mode")))


def _sources(entries: Iterable[Any]) -> list[str]:
    return [entry if isinstance(entry, str) else entry.source for entry in entries]


def _task(root: Path, config: Any, steps: list[Step], seal: str) -> Task:
    from harbor.models.task.verifier_mode import task_has_any_separate_verifier

    box, own = config.environment, config.verifier.environment
    agent_network = config.agent if config.agent.network_mode is not None else box
    verifier_network = config.verifier.network_mode or (own.network_mode if own is not None else box.network_mode)
    artifacts = [*_sources(config.artifacts), *(s for step in config.steps or [] for s in _sources(step.artifacts))]
    ours = config.metadata.get("workbench", {})
    return Task(
        path=root,
        name=config.task.name if config.task is not None else root.name,
        steps=tuple(steps),
        digest=seal,
        config=config.model_dump(mode="json"),
        network=agent_network.network_mode.value,
        allowed_hosts=tuple(agent_network.allowed_hosts or ()),
        cpus=float(box.cpus) if box.cpus is not None else 1.0,
        memory_mb=box.memory_mb if box.memory_mb is not None else 1024,
        storage_mb=box.storage_mb if box.storage_mb is not None else 1024,
        build_timeout=box.build_timeout_sec,
        verifier_network=verifier_network.value,
        verifier_env=dict(config.verifier.env),
        separate=task_has_any_separate_verifier(config),
        artifacts=tuple(dict.fromkeys(artifacts)),
        keep_services=ours.get("keep_services", False),
        reward_strategy=config.multi_step_reward_strategy.value if config.multi_step_reward_strategy else "mean",
    )
