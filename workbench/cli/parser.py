"""What the command line takes. Only argparse is imported here: `workbench --help` answers at once."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from typing import Any

from workbench import __version__

BACKEND_HELP = "bubblewrap (default), docker, or harbor:<type>"


class UsageError(Exception):
    """The command line asks for what there is not; exit code 2."""


def build_parser() -> argparse.ArgumentParser:
    """The whole command line."""
    parser = argparse.ArgumentParser(
        prog="workbench", description="Environments for terminal agents: check, validate, run."
    )
    parser.add_argument("--version", action="version", version=f"workbench {__version__}")
    parser.set_defaults(command=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    rooms = (_check, _validate, _calibrate, _run, _resume, _runs, _clean, _agents, _task, _traces, _train_plan, _worlds)
    for add in rooms:
        add(commands)
    return parser


def _lazily(module: str, function: str = "main") -> Callable[[argparse.Namespace], int]:
    def command(arguments: argparse.Namespace) -> int:
        return getattr(importlib.import_module(f"workbench.cli.{module}"), function)(arguments)

    return command


def _new(commands: Any, name: str, module: str, help: str, function: str = "main") -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name, help=help, description=help[0].upper() + help[1:] + ("" if help.endswith("?") else ".")
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line on stdout")
    parser.set_defaults(command=_lazily(module, function))
    return parser


def _positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return value


def _tasks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("tasks", nargs="+", metavar="TASK", help="a task's folder, or a folder of tasks")
    parser.add_argument("--backend", default="bubblewrap", help=BACKEND_HELP)
    parser.add_argument(
        "-j", "--jobs", type=_positive, default=None, metavar="N", help="side by side (default: by the cores)"
    )


def _check(commands: Any) -> None:
    _new(commands, "check", "check_command", "what this machine can do, what is missing, and what to do about it")


def _validate(commands: Any) -> None:
    parser = _new(
        commands,
        "validate",
        "validate",
        "validate tasks: they build, the reference solution earns 1, doing nothing earns less than 0.5, both repeatably",
    )
    _tasks(parser)
    parser.add_argument(
        "--held-out", metavar="PATH", help="held-out tasks or text files that instructions must not repeat"
    )
    parser.epilog = "Verdicts are printed as they come. One bad task never stops the others."


def _calibrate(commands: Any) -> None:
    parser = _new(commands, "calibrate", "calibrate", "measure tasks against a solver: is its mean reward in the band?")
    _tasks(parser)
    parser.add_argument("--agent", default="terminal", help="terminal (default), oracle or noop")
    parser.add_argument(
        "--model", default="smollm2", help="smollm2 (embedded, default), transformers:…, litellm:…, scripted:…"
    )
    parser.add_argument("--rollouts", type=_positive, default=4, metavar="N", help="first rollouts (default 4)")
    parser.add_argument(
        "--more", type=_positive, default=8, metavar="N", help="rollouts near an edge of the band (default 8)"
    )
    parser.add_argument(
        "--band", type=float, nargs=2, default=(0.25, 0.75), metavar=("LOW", "HIGH"), help="default 0.25 0.75"
    )
    parser.add_argument(
        "--turns", type=_positive, default=32, metavar="N", help="model calls in one rollout (default 32)"
    )
    parser.add_argument("--max-tokens", type=_positive, metavar="N", help="of one reply (default 2048; smollm2: 128)")
    parser.add_argument("--temperature", type=float, default=1.0, metavar="T", help="default 1.0")
    parser.add_argument("--seed", type=int, default=0, help="of the rollouts (default 0)")


def _run(commands: Any) -> None:
    parser = _new(commands, "run", "notebooks", "run a notebook headless into its run folder")
    parser.add_argument("notebook", metavar="NOTEBOOK", help="40_flywheel, 40, or a path")
    pair = {"action": "append", "default": [], "metavar": ("NAME", "VALUE")}
    parser.add_argument("-p", dest="parameters", nargs=2, help="one parameter, one value", **pair)
    text = "a parameter and several values; every combination of all grids is one run"
    parser.add_argument("--grid", nargs="+", help=text, **pair)
    _jobs(parser)
    parser.add_argument("--again", action="store_true", help="also runs of the grid that are done already")
    parser.add_argument(
        "--parameters", dest="show_parameters", action="store_true", help="list its parameters and run nothing"
    )


def _jobs(parser: argparse.ArgumentParser) -> None:
    text = "runs side by side (default: by cores and memory)"
    parser.add_argument("-j", "--jobs", type=_positive, default=None, metavar="N", help=text)


def _resume(commands: Any) -> None:
    text = "go on with a run, or a batch, that was stopped, killed or failed"
    parser = _new(commands, "resume", "notebooks", text, "resume")
    parser.add_argument("run", metavar="RUN", help="a run's folder, its id, a batch's id, or latest (not finished)")
    _jobs(parser)


def _runs(commands: Any) -> None:
    parser = _new(commands, "runs", "runs", "list runs, newest first; compare them; open one; follow one")
    parser.usage = "%(prog)s [options] [NOTEBOOK | compare RUN RUN... | open RUN | live RUN]"
    parser.add_argument(
        "words",
        nargs="*",
        metavar="NOTEBOOK",
        help="only of this notebook; or: compare RUN RUN..., or: open RUN, or: live RUN",
    )
    states = ("running", "done", "failed", "interrupted", "killed", "interactive")
    parser.add_argument("--state", action="append", choices=states, help="only such runs; may be repeated")
    parser.add_argument(
        "-p", dest="values", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
        help="only runs with this parameter",
    )  # fmt: skip
    parser.add_argument("--batch", metavar="BATCH", help="only runs that this batch began")
    parser.add_argument("--last", type=_positive, metavar="N", help="only the newest N")
    parser.add_argument("--open", action="store_true", help="with `open`: also show the folder in a browser")


def _clean(commands: Any) -> None:
    parser = _new(commands, "clean", "clean", "remove what dead runs left on this machine; living runs are not touched")
    parser.add_argument("--backend", action="append", metavar="NAME", help=f"only this one: {BACKEND_HELP}")


def _agents(commands: Any) -> None:
    group = commands.add_parser(
        "agents", help="install coding agents for sandboxes", description="Install coding agents for sandboxes."
    )
    actions = group.add_subparsers(title="actions", metavar="ACTION", required=True)
    parser = _new(
        actions, "install", "agents", "install coding agents by npm, pinned, once for this machine", "install"
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="claude-code, codex, pi")
    _new(actions, "list", "agents", "list coding agents, their versions, and which are installed", "list_")


def _task(commands: Any) -> None:
    task = commands.add_parser("task", help="make a new task", description="Make a new task.")
    actions = task.add_subparsers(title="actions", metavar="ACTION", required=True)
    parser = _new(actions, "new", "task", "make a task folder that validates as it is, to be filled in", "new")
    parser.add_argument("path", metavar="PATH", help="the folder to make")
    parser.add_argument("--name", help="org/name (default local/<folder>)")
    parser.add_argument("--multi-step", action="store_true", help="two instructions, each with tests of its own")


def _traces(commands: Any) -> None:
    group = commands.add_parser("traces", help="look into what agents did", description="Look into what agents did.")
    actions = group.add_subparsers(title="actions", metavar="ACTION", required=True)

    def new(name: str, help: str, *, read: bool = True) -> argparse.ArgumentParser:
        module, function = ("traces_agreement", "main") if name == "agreement" else ("traces", name)
        parser = _new(actions, name, module, help, "import_" if name == "import" else function)
        if read:
            parser.add_argument("--format", metavar="NAME", help="of the files (default: found out)")
        return parser

    parser = new("import", "read traces of Claude Code, Codex, Pi, mini-swe-agent, ATIF or ours into one record")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--to", required=True, metavar="DIR", help="the folder to write to")
    parser.add_argument("--keep-secrets", action="store_true", help="replace no keys, tokens, home folders and names")
    parser = new("turns", "list the turns of traces: each public text step and each tool call is one")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser = new("classify", "guess of each turn whether it reads, builds, writes or tests")
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--rules", metavar="FILE", help="other keyword rules than ours")
    parser = new("agreement", "compare two labellings: percent, Cohen's kappa, confusion", read=False)
    parser.add_argument("labels", nargs=2, metavar="LABELS", help="a journal, a folder of journals, or: classifier")
    parser.add_argument(
        "--annotators",
        nargs=2,
        metavar=("A", "B"),
        help="whose labels, where a journal has several (resolved: what they agree on)",
    )
    parser.add_argument("--traces", metavar="PATH", help="the traces, for the classifier")
    parser.add_argument("--by-trace", action="store_true", help="kappa's interval from whole traces, not single turns")
    parser = new("export", "write a trace as ATIF 1.8")
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("--to", required=True, metavar="FILE", help="the file to write")
    parser.add_argument("--labels", metavar="JOURNAL", help="put these labels into the steps")
    parser.add_argument("--keep-secrets", action="store_true", help="replace no keys, tokens, home folders and names")
    parser = new("search", "find text in the turns of traces", read=False)
    parser.add_argument("query", metavar="TEXT")
    parser.add_argument("paths", nargs="+", metavar="PATH", help="a trace, or a folder of traces")
    parser.add_argument("--regex", action="store_true", help="TEXT is a regular expression")
    parser.add_argument("--case", action="store_true", help="upper and lower case differ")


def _worlds(commands: Any) -> None:
    group = commands.add_parser(
        "worlds",
        help="programs that make environments from a seed",
        description="Programs that make environments from a seed.",
    )
    actions = group.add_subparsers(title="actions", metavar="ACTION", required=True)
    tiers = ("micro", "unit", "small", "full")

    def new(name: str, help: str, function: str | None = None, module: str = "worlds") -> argparse.ArgumentParser:
        return _new(actions, name, module, help, function or name)

    new("list", "list the generators", "list_")
    parser = new("gates", "run the qualification gates of generators")
    parser.add_argument("names", nargs="*", metavar="NAME", help="generators (default: all)")
    parser.add_argument("--seeds", default="1-3", help="like 3, 1,4,9 or 1-20 (default 1-3)")
    parser.add_argument("--tier", action="append", choices=tiers, help="only this one; may be repeated")
    parser = new("new", "make a generator's folder, to be rewritten")
    parser.add_argument("name", metavar="NAME", help="lower-case words joined with underscores")
    parser.add_argument(
        "--to",
        metavar="DIR",
        help="the folder it goes into (default: the first of $WORKBENCH_GENERATORS, else a checkout's own, else generators/)",
    )
    parser = new("export", "write one environment as a Harbor task")
    parser.add_argument("name", metavar="NAME", help="a generator")
    parser.add_argument("out", metavar="OUT", help="a new folder")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    parser.add_argument("--tier", default="unit", choices=tiers, help="default unit")
    parser.add_argument("--kinds", metavar="KIND,KIND", help="keep only these corruption kinds of the plan")
    parser = new(
        "corpus",
        "build environments that cover the axes, each gated; goes on where it was stopped",
        "corpus",
        "worlds_corpus",
    )
    parser.add_argument("out", metavar="OUT", help="a folder: new, or of a corpus that was stopped")
    parser.add_argument("--size", type=_positive, required=True, metavar="N", help="environments (Tev-Gym: 1170)")
    parser.add_argument(
        "-j", "--jobs", type=_positive, default=None, metavar="N", help="processes (default: the cores)"
    )
    parser.add_argument(
        "--tier", action="append", choices=tiers, help="only this one; may be repeated (default: all but micro)"
    )
    parser.add_argument("--generator", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument(
        "--partition",
        choices=("training", "calibration", "held_out_seeds", "held_out_generators"),
        help="only seeds of this host-kept partition (default: all seeds)",
    )
    parser.add_argument("--salt", default="workbench", help="of the partitions; who knows it knows them")
    parser.add_argument("--no-tasks", action="store_true", help="gate and label, write no tasks")
    parser = new("coverage", "coverage, balance and horizon of a corpus", "coverage", "worlds_corpus")
    parser.add_argument("corpus", metavar="CORPUS", help="a folder that `worlds corpus` made")
    parser.add_argument(
        "--uncovered", type=_positive, default=20, metavar="N", help="uncovered pairs to show (default 20)"
    )
    parser = new("overlap", "lexical overlap of a corpus with held-out tasks", "overlap", "worlds_corpus")
    parser.add_argument("corpus", metavar="CORPUS", help="a folder that `worlds corpus` made")
    parser.add_argument("held_out", nargs="+", metavar="HELD_OUT", help="a folder of Harbor tasks or text files")


def _train_plan(commands: Any) -> None:
    parser = _new(
        commands, "train-plan", "train_plan", "memory and placement of training at a size, and the files to launch it"
    )
    parser.add_argument("profile", metavar="PROFILE", help="paper, paper-9b, tev-9b, tev-27b or small")
    parser.add_argument("--dry-run", action="store_true", help="print only, write no files")
    parser.add_argument("--to", metavar="DIR", default="launch", help="the folder for the files (default launch)")
    parser.add_argument("--model", metavar="MODEL", help="another model: a folder with config.json, or a hub model")
    parser.add_argument("--gpus", type=_positive, metavar="N", help="GPUs in all")
    parser.add_argument("--learner-gpus", type=_positive, metavar="N", help="of them for the learner")
    parser.add_argument("--gpu-gb", type=float, metavar="GB", help="memory of one GPU")
    parser.add_argument("--sharding", choices=("fsdp2", "zero3", "none"), help="how the learner is spread")
    parser.add_argument("--sequence", type=_positive, metavar="N", help="tokens of the longest trajectory")
    parser.add_argument(
        "--token-budget", type=_positive, metavar="N", help="tokens of a micro-batch on each learner GPU"
    )
