"""The gate: a task directory goes in, a verdict with its reasons comes out.

Stages in order: files, build, oracle, noop, repeat, contamination, review, calibration (design: AutoEnvScaling §3.2 and
G.4). The first stage with a reason ends the way. Nothing here can be edited by whoever proposed the task.
"""

from __future__ import annotations

import functools
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from workbench.admission import Admission, Reason
from workbench.admission.calibration import Calibration
from workbench.admission.calibration import calibrate as run_calibration
from workbench.admission.contamination import HeldOut
from workbench.admission.review import Reviewer, ReviewUnreadable, review_task
from workbench.admission.validation import Desk, Stopped, validate
from workbench.models import ModelError
from workbench.sandboxes import Backend
from workbench.trials.batch import Watch
from workbench.trials.run import Recorder

VALIDATION_FAILED, CALIBRATION_FAILED, BOTH_PASSED = -1.0, -0.25, 1.0  # AutoEnvScaling, Eq. 2


def admit(
    path: str | Path,
    backend: Backend,
    *,
    calibrate: Calibration | None = None,
    held_out: HeldOut | str | Path | None = None,
    review: Reviewer | None = None,
    repeats: int = 2,
    partials: Sequence[Path] = (),
    run: Recorder | None = None,
    id: str | None = None,
    cancel: threading.Event | None = None,
) -> Admission:
    """Take one task directory through the gate. Never raises for what task, agent or machine did.

    calibrate: how to calibrate; None leaves `admitted` and, for a valid task, `reward` open. held_out: a HeldOut index
    or a folder of held-out tasks; None skips contamination. review: None skips the review. repeats: how often oracle and
    no-op run (2: once more each, the design's rule; 1: no check for flakiness). partials: scripts of partial or wrong
    solutions whose rewards are reported, beside the task's own `solution/partial/*.sh`. run: trials and the verdict are
    written to its journal ("trial", "admission"). id: the verdict's; else a fresh one.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1, not {repeats}")
    index = _index(held_out)
    desk = Desk(Path(path), backend, run, cancel, key=id)
    infra, validated, keep = "", False, None
    try:
        validate(desk, repeats=repeats, partials=partials)
        _contamination(desk, index)
        _review(desk, review)
        validated = True
        keep = _calibration(desk, calibrate)
    except Stopped as stopped:
        infra = stopped.infra
        keep = False if not infra else None
    except Exception as error:  # a fault of ours: no verdict on the task
        infra = f"unexpected {type(error).__name__}: {error}\n{traceback.format_exc()[-3000:]}"
    admission = _verdict(desk, validated=validated, keep=keep, infra=infra, id=id)
    if run is not None:
        run.record("admission", admission.to_row())
    return admission


def admit_many(
    paths: Sequence[str | Path],
    backend: Backend,
    *,
    workers: int = 2,
    on_result: Callable[[Admission], None] | None = None,
    ids: Sequence[str] | None = None,
    held_out: HeldOut | str | Path | None = None,
    cancel: threading.Event | None = None,
    **options: object,
) -> list[Admission]:
    """`admit` many tasks side by side; verdicts in the order of `paths`, one bad task never stops the others.

    on_result: called as each verdict comes, one call at a time. ids: of the verdicts, one for each path, so that a caller
    knows which is which (a broken task may have no name, and two may share one). The other options are `admit`'s. An
    interrupt removes the living sandboxes at once and passes through.
    """
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    index = _index(held_out)
    watch, lock = Watch(cancel or threading.Event()), threading.Lock()

    def one(path: str | Path, id: str | None) -> Admission:
        with watch.over(backend) as watched:
            found = admit(path, watched, held_out=index, id=id, cancel=watch.cancel, **options)  # type: ignore[arg-type]
        if on_result is not None:
            with lock:
                on_result(found)
        return found

    with ThreadPoolExecutor(workers, thread_name_prefix="admit") as pool:
        futures = [pool.submit(one, path, id) for path, id in zip(paths, ids or [None] * len(paths), strict=True)]
        try:
            return [future.result() for future in futures]
        except BaseException:
            watch.abort()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def proposer_reward(*, validated: bool, admitted: bool | None, infra: bool) -> float | None:
    """r_P of AutoEnvScaling, Eq. 2; None while infrastructure or a missing calibration leaves it open."""
    if infra:
        return None
    if not validated:
        return VALIDATION_FAILED
    if admitted is None:
        return None
    return BOTH_PASSED if admitted else CALIBRATION_FAILED


def _contamination(desk: Desk, index: HeldOut | None) -> None:
    if index is None or desk.task is None:
        return
    with desk.at("contamination"):
        found = index.check(desk.task)
        desk.report["contamination"] = found.to_row()
        if found.hit:
            desk.refuse(Reason("contamination", found.message, "contamination"))


def _review(desk: Desk, reviewer: Reviewer | None) -> None:
    if reviewer is None or desk.task is None:
        return
    with desk.at("review"):
        try:
            found = review_task(desk.task, reviewer)
        except (ReviewUnreadable, ModelError) as error:
            raise Stopped(infra=f"review-unreadable: {error}") from error
        desk.report["review"] = found.to_row()
        desk.reasons += found.reasons()


def _calibration(desk: Desk, calibration: Calibration | None) -> bool | None:
    if calibration is None or desk.task is None:
        return None
    with desk.at("calibration"):
        found = run_calibration(desk.task, desk.backend, calibration, run=desk.run, cancel=desk.cancel, key=desk.key)
        desk.trials += found.trials
        desk.rewards["solver"] = list(found.rewards)
        desk.report["calibration"] = found.to_row()
        if found.keep is None:
            raise Stopped(infra="; ".join(f"{reason.kind}: {reason.message}" for reason in found.reasons))
        desk.reasons += found.reasons
    return True


def _verdict(desk: Desk, *, validated: bool, keep: bool | None, infra: str, id: str | None) -> Admission:
    reasons = tuple(desk.reasons)
    if infra:
        reasons += (Reason("infra", f"no verdict, because infrastructure failed: {infra}. Try again", desk.stage),)
    admitted = False if not validated and not infra else keep
    return Admission(
        id=id or uuid.uuid4().hex[:16],
        run_id=desk.run.id if desk.run is not None else "",
        time=time.time(),
        task=desk.task.name if desk.task is not None else desk.path.name,
        digest=desk.task.digest if desk.task is not None else "",
        stage=desk.stage if reasons else "admitted",
        valid_paper=desk.valid_paper,
        validated=validated,
        admitted=admitted,
        reasons=reasons,
        reward=proposer_reward(validated=validated, admitted=admitted, infra=bool(infra)),
        rewards=desk.rewards,
        seconds=desk.seconds,
        report=desk.report,
        trials=tuple(desk.trials),
        infra=bool(infra),
    )


def _index(held_out: HeldOut | str | Path | None) -> HeldOut | None:
    if held_out is None or isinstance(held_out, HeldOut):
        return held_out
    folder = Path(held_out).absolute()
    return _read_index(folder, folder.stat().st_mtime_ns if folder.is_dir() else 0)


@functools.lru_cache(maxsize=4)
def _read_index(folder: Path, changed: int) -> HeldOut:
    """One index a folder, read again when the folder itself has changed."""
    return HeldOut.from_folder(folder)
