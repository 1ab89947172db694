"""Lives of one run, each a forked process that may kill itself: `python -m tests.training.killed_learning RUN TASKS PLACE…`.

A place is `rollout:N`, `update:N` or `saved:N` (SIGKILL before the N-th rollout, after the N-th update, after the N-th checkpoint, which the
journal does not know yet), or `end`. Prints how each life ended. The imports are done once, before the first fork: no thread lives then.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path

SERIAL = {
    "workers": 1, "oversample": 1.0, "proposer_every": 1, "review_every": 1, "group": 3, "proposer_group": 2, "calibration_rollouts": 2,
    "calibration_more": 2, "steps": 3,
}  # fmt: skip


def life(run_folder: str, tasks: str, place: str) -> None:
    from tests.training.learning_parts import VALUES, tiny_policy
    from workbench.runs.folder import open_run
    from workbench.training.setup_learning import make_learning

    run = open_run(run_folder).begin()
    made = make_learning(run, {**VALUES, **SERIAL, "parents": tasks}, policy=tiny_policy(workers=1))
    made.say = lambda text: None
    kind, _, number = place.partition(":")
    if kind == "rollout":
        made.executor.play = dying(made.executor.play, int(number), before=True)
    elif kind == "update":
        made.learner.update = dying(made.learner.update, int(number))
    elif kind == "saved":
        made.save = dying(made.save, int(number))
    made.learn()
    made.policy.close()
    run.close()


def dying(function, number: int, before: bool = False):
    """The function, until its call `number`, before or after which the process is killed."""
    calls = 0

    def wrapped(*args, **options):
        nonlocal calls
        calls += 1
        if before and calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        result = function(*args, **options)
        if calls == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return wrapped


def main(run_folder: str, tasks: str, *places: str) -> None:
    import torch
    import transformers  # noqa: F401

    import workbench.training.trainer  # noqa: F401

    torch.set_num_threads(1)
    Path(run_folder).resolve(strict=True)
    for place in places:
        if (child := os.fork()) == 0:
            try:
                life(run_folder, tasks, place)
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        print(place, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
