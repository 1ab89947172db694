"""Launch settings change nothing but who computes: two gloo processes, FSDP2, an update as a program, a kill while saving."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import socket
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="launches need torch (extra `train`)")
pytest.importorskip("accelerate", reason="launches need accelerate (extra `train`)")

from tests.training.launched import main as launched  # noqa: E402
from tests.training.tiny_policy import sampled_rollouts, tiny_policy  # noqa: E402
from workbench.training.checkpoint import usable  # noqa: E402
from workbench.training.launch import main as launch  # noqa: E402
from workbench.training.launch import write_launch  # noqa: E402
from workbench.training.plan import PlanError, Shape, load_plan, memory, placement, plan_names, shape_of  # noqa: E402
from workbench.training.settings import UpdateSettings  # noqa: E402
from workbench.training.trainer import Learner  # noqa: E402

SHARDED = {
    "ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2", "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
    "FSDP_TRANSFORMER_CLS_TO_WRAP": "LlamaDecoderLayer",
}  # fmt: skip


# forks of a clean process that has torch imported already: neither a second import, nor a fork of pytest's threads
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["torch", "accelerate", "transformers.models.llama.modeling_llama"])


def one_of_two(environment: dict[str, str], out: str, checkpoints: str) -> None:
    os.environ.update(environment)
    launched(out, checkpoints)


def two_processes(out: Path, checkpoints: Path, **environment: str) -> dict:
    """What `accelerate launch --cpu --num_processes 2` sets, without the launcher's own start."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = {
        "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
        "ACCELERATE_USE_CPU": "true", "OMP_NUM_THREADS": "1", **environment,
    }  # fmt: skip
    started = [
        FORKS.Process(target=one_of_two, args=(shared | {"RANK": r, "LOCAL_RANK": r}, str(out), str(checkpoints)))
        for r in ("0", "1")
    ]
    for process in started:
        process.start()
    try:
        for process in started:
            process.join(200)
        assert [p.exitcode for p in started] == [0, 0]
    finally:
        for process in started:
            process.kill()
    return torch.load(out)


def same(many: dict, one: dict, folder: Path) -> None:
    from transformers import AutoModelForCausalLM

    saved = AutoModelForCausalLM.from_pretrained(folder / "policy").state_dict()  # what an engine loads
    assert all(torch.equal(saved[key], weight) for key, weight in many["weights"].items())
    for key, weight in one["weights"].items():
        torch.testing.assert_close(many["weights"][key], weight, atol=2e-6, rtol=1e-5)
    for row, wanted in zip(many["rows"], one["rows"], strict=True):
        assert (row["tokens"], row["version"], row["groups"]) == (wanted["tokens"], wanted["version"], wanted["groups"])
        assert row["loss"] == pytest.approx(wanted["loss"], abs=1e-5)
        assert row["grad_norm"] == pytest.approx(wanted["grad_norm"], rel=1e-4)
        assert row["masked"] == pytest.approx(wanted["masked"])


def test_two_processes_take_the_step_of_one(tmp_path):
    launched(str(tmp_path / "one.pt"))
    many = two_processes(tmp_path / "two.pt", tmp_path / "checkpoints")
    assert many["kind"] == "MULTI_CPU"
    same(many, torch.load(tmp_path / "one.pt"), tmp_path)


def test_fsdp_takes_the_step_of_one(tmp_path):
    launched(str(tmp_path / "one.pt"))
    many = two_processes(tmp_path / "two.pt", tmp_path / "checkpoints", **SHARDED)
    assert many["kind"] == "FSDP"
    same(many, torch.load(tmp_path / "one.pt"), tmp_path)


def settings():
    return UpdateSettings(denominator=100.0, learning_rate=1e-3)


def killed_while_saving(folder: str, half) -> None:
    """A real learner that stops in the middle of its second save."""
    torch.set_num_threads(1)
    one = Learner(tiny_policy(0), settings(), cpu=True)
    rollouts = sampled_rollouts(tiny_policy(0), 2, 4)
    one.update(rollouts)
    one.save(folder, {"pool": ["first"]})
    one.update(rollouts)
    saving = one.accelerator.save_state

    def halfway(target, **options):
        saving(target, **options)
        half.set()
        time.sleep(60)

    one.accelerator.save_state = halfway
    one.save(folder, {"pool": ["second"]})


def test_kill_9_while_saving_goes_on_from_the_step_before_with_the_same_next_step(tmp_path):
    half = FORKS.Event()
    process = FORKS.Process(target=killed_while_saving, args=(str(tmp_path), half))
    process.start()
    assert half.wait(200)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    assert usable(tmp_path).name == "step-00000001"
    rollouts = sampled_rollouts(tiny_policy(0), 2, 4)
    straight = Learner(tiny_policy(0), settings(), cpu=True)
    wanted = [straight.update(rollouts)[0] for _ in range(2)][1]
    resumed = Learner(tiny_policy(8), settings(), cpu=True)
    assert resumed.load(tmp_path) == {"pool": ["first"]}
    got = resumed.update(rollouts)[0]
    assert (got.version, got.loss, got.grad_norm) == (2, wanted.loss, wanted.grad_norm)
    assert all(
        torch.equal(a, b) for a, b in zip(resumed.policy.parameters(), straight.policy.parameters(), strict=True)
    )


def test_an_update_as_a_program(tmp_path, capsys):
    policy = tiny_policy(0)
    policy.save_pretrained(tmp_path / "model")
    rollouts = sampled_rollouts(policy, 3, 4)
    (tmp_path / "rollouts.jsonl").write_text("".join(r.to_json() + "\n" for r in rollouts))
    command = [str(tmp_path / "model"), str(tmp_path / "rollouts.jsonl"), "--out", str(tmp_path / "out"), "--cpu"]
    options = ["--denominator", "100", "--learning-rate", "1e-3", "--shaping", "pprs", "--betas", "0.9", "0.99"]
    for version in (1, 2):
        assert launch([*command, *options]) == 0
        row = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert (row["version"], row["stepped"], row["groups"]) == (version, True, 3)
    assert (tmp_path / "out" / "policy" / "model.safetensors").is_file()
    (tmp_path / "rollouts.jsonl").write_text(rollouts[0].to_json() + "\n{}\n")
    with pytest.raises(ValueError, match="line 2: not a rollout"):
        launch([*command, *options])


# -- plans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", plan_names())
def test_every_value_of_every_plan_has_a_source(name):
    plan = load_plan(name, model="given")
    assert all(entry.keys() == {"value", "source"} and entry["source"] for entry in plan.values())
    assert all(entry["value"] is not None for entry in plan.values())


def test_memory_by_hand():
    shape = Shape("x", parameters=1_000_000, layers=10, hidden=100, vocabulary=1000, largest_layer=50_000)
    plan = load_plan("tev-9b", learner_gpus=4, sequence=1000, token_budget=1000)
    parts = {p.what: p.bytes for p in memory(shape, plan)}
    assert parts["weights (bf16)"] + parts["gradients (bf16)"] == 1e6  # 4 bytes of 1e6 over 4
    assert parts["optimizer (float32 weights, two moments)"] == 3e6
    assert parts["layers gathered"] == 2e5
    assert parts["layer inputs kept"] == 2e6
    assert parts["one layer recomputed"] == 3.4e6
    assert parts["logits"] == 8e6
    whole = load_plan("small", sequence=1000, token_budget=1000)
    parts = {p.what: p.bytes for p in memory(shape, whole)}
    assert parts["activations"] == 34e6
    assert sum(v for k, v in parts.items() if "float32" in k) == 16e6


def test_placement_names_every_gpu():
    shape = Shape("x", 10**9, 10, 100, 1000, 50_000)
    lines = placement(shape, load_plan("paper", tensor_parallel=1))
    assert lines[0].startswith("GPU 0–5: learner")
    assert lines[1].startswith("GPU 6–7: 2 engines")
    assert "idle" in placement(shape, load_plan("paper", learner_gpus=5, tensor_parallel=2))[2]


def test_the_shape_of_a_folder_is_counted_without_weights(tmp_path):
    policy = tiny_policy(0)
    policy.config.save_pretrained(tmp_path)
    shape = shape_of(str(tmp_path))
    assert shape.parameters == sum(p.numel() for p in policy.parameters())
    assert shape.largest_layer == sum(p.numel() for p in policy.model.layers[0].parameters())
    with pytest.raises(PlanError, match="no shape"):
        shape_of("config:no_such_type")


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [("tev-27b", {}, "unpublished"), ("none", {}, "there are"), ("paper", {"learner_gpus": 9}, "9 learner GPUs of 8")],
)
def test_plans_that_cannot_be_are_refused(name, changes, said):
    with pytest.raises(PlanError, match=said):
        load_plan(name, **changes)


@pytest.mark.parametrize("sharding", ["fsdp2", "zero3", "none"])
def test_accelerate_reads_the_launch_files(tmp_path, sharding):
    from accelerate.commands.config.config_args import load_config_from_file

    files = write_launch({"sharding": sharding, "learner_gpus": 6}, tmp_path)
    config = load_config_from_file(str(files[0]))
    assert config.num_processes == 6
    if sharding == "zero3":
        assert (
            json.loads(Path(config.deepspeed_config["deepspeed_config_file"]).read_text())["zero_optimization"]["stage"]
            == 3
        )


def test_the_command_prints_memory_and_placement(tmp_path, capsys):
    from workbench.cli import main

    tiny_policy(0).config.save_pretrained(tmp_path)
    assert main(["train-plan", "paper", "--dry-run", "--model", str(tmp_path), "--sequence", "512"]) == 0
    said = capsys.readouterr().out
    assert "fits" in said
    assert "GPU 6–7: 2 engines" in said
    assert main(["train-plan", "paper", "--dry-run", "--model", str(tmp_path), "--gpu-gb", "0.0001"]) == 1
    assert main(["train-plan", "tev-9b", "--model", str(tmp_path), "--to", str(tmp_path / "launch"), "--json"]) == 0
    assert (tmp_path / "launch" / "deepspeed_zero3.yaml").is_file()
    assert main(["train-plan", "nonsense"]) == 2
