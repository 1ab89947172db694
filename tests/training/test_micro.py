"""The micro policy: its vocabulary covers what its episodes say, its conversations never break, its experts are right."""

from __future__ import annotations

import subprocess

import pytest

from workbench.agents.protocol import parse_action
from workbench.training import micro
from workbench.training.micro.experts import CORRUPTIONS, LOOK, ProposerExpert, SolverExpert, block, job_line, jobs_of
from workbench.training.micro.vocabulary import new_tokenizer, pieces
from workbench.worlds import build
from workbench.worlds.catalog import get
from workbench.worlds.draw import Draw


@pytest.fixture(scope="module")
def tokenizer():
    return new_tokenizer()


def ids(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def test_pieces_are_few_and_each_is_one_token(tokenizer):
    assert len(pieces()) == len(set(pieces())) <= 1024
    for piece in pieces():
        assert len(ids(tokenizer, piece)) == 1, piece


def test_known_texts_come_back_as_they_were_and_fit_in_a_turn(tokenizer):
    for job in ("top", "seal", "order"):
        for remark in ("clean", "stale", "double", "void"):
            text = block(job_line(job, "reed", remark))
            found = ids(tokenizer, text)
            assert tokenizer.decode(found) == text
            assert tokenizer.unk_token_id not in found
            assert len(found) + 1 <= micro.SAMPLING.max_tokens
    for text in (
        block(LOOK),
        "[exit code 0]\ntop reed stale seal grove double order yew clean",
        "micro_gate none rarely simpler",
    ):
        assert tokenizer.decode(ids(tokenizer, text)) == text


@pytest.mark.parametrize("generator", ["micro_shelf", "micro_gate"])
def test_every_word_of_a_micro_worlds_note_and_rungs_is_known(tokenizer, generator):
    for seed in range(20):
        environment = build(generator, seed, "micro")
        title, note = environment.spec.title, environment.public["input/note.txt"].decode()
        kinds = " ".join(d.kind for d in environment.defects)
        assert tokenizer.unk_token_id not in ids(tokenizer, f"{generator} micro {title} {note} {kinds}")
    assert set(CORRUPTIONS) == set(get("micro_shelf").world.KIND.values())


def test_other_text_is_unknown_and_whole_words_are_not_cut(tokenizer):
    assert [tokenizer.decode([i]) for i in ids(tokenizer, "category reeds cat")] == ["<unk>", " ", "<unk>", " ", "cat"]


def test_the_prompt_shows_the_role_and_the_title_only():
    said = micro.solver_prompt.opening("# shelf\n\nA long text that nobody can read.")
    assert said == [{"role": "system", "content": "solve"}, {"role": "user", "content": "shelf"}]


def test_models_of_one_seed_are_equal_and_small(tmp_path):
    a, b, c = micro.new_model(3), micro.new_model(3), micro.new_model(4)
    assert 1_000_000 <= sum(p.numel() for p in a.parameters()) <= 3_000_000
    weights = [m.state_dict()["model.layers.0.mlp.up_proj.weight"] for m in (a, b, c)]
    assert weights[0].equal(weights[1])
    assert not weights[0].equal(weights[2])
    a.save_pretrained(tmp_path)
    new_tokenizer().save_pretrained(tmp_path)
    again, tokenizer = micro.open_policy(tmp_path)
    assert again.state_dict()["model.layers.0.mlp.up_proj.weight"].equal(weights[0])
    assert ids(tokenizer, "[exit code 0]\ntop reed") == ids(new_tokenizer(), "[exit code 0]\ntop reed")


def test_a_folder_without_a_model_says_what_makes_one(tmp_path):
    with pytest.raises(FileNotFoundError, match="make cold-start"):
        micro.open_policy(tmp_path)


def test_a_conversation_of_four_turns_is_one_segment_without_breaks():
    model, tokenizer = micro.open_policy(None, seed=1)
    policy = micro.engine_model(model, tokenizer)
    try:
        conversation, said = policy.conversation("t"), micro.solver_prompt.opening("# shelf")
        for _ in range(4):
            reply = conversation.reply(said, micro.SAMPLING)
            said += [
                {"role": "assistant", "content": reply.text},
                {"role": "user", "content": "[exit code 0]\ntop reed"},
            ]
        assert not conversation.recording.breaks
        [segment] = conversation.segments()
        assert segment.ids[: len(reply.prompt_ids)] == reply.prompt_ids
        assert max(segment.turns) == 3
    finally:
        policy.engine.close()


def episode(expert, note):
    said = micro.solver_prompt.opening("# shelf")
    commands = []
    for turn in range(4):
        text = expert.answer(said)
        commands.append(parse_action(text).command)
        said += [{"role": "assistant", "content": text}, {"role": "user", "content": "[exit code 0]" + ("" if turn else f"\n{note}")}]  # fmt: skip
    return commands


def test_the_solvers_expert_does_every_job(tmp_path):
    environment = build("micro_shelf", 5, "micro")
    for path, data in environment.public.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    note = environment.public["input/note.txt"].decode().strip()
    for command in episode(SolverExpert(Draw("t")), note):
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True, capture_output=True)
    assert {f"output/{p.name}": p.read_bytes() for p in (tmp_path / "output").iterdir()} == dict(environment.output)


def test_noise_makes_wrong_lines_about_as_often_as_it_says():
    note = "top reed stale seal grove double order yew clean"
    right = [job_line(*job) for job in jobs_of(note)]
    wrong = sum(
        a != b for n in range(300) for a, b in zip(episode(SolverExpert(Draw(n), 0.2), note)[1:], right, strict=True)
    )
    assert 120 <= wrong <= 240


def test_the_proposers_expert_goes_the_way_that_was_asked():
    def kinds(line, noise=0.0):
        said = [{"role": "user", "content": line}]
        return parse_action(ProposerExpert(Draw(line), noise).answer(said)).command.split()[4:]

    assert len(kinds("micro_shelf duplicate_records stale_copy rarely simpler")) == 1
    assert len(kinds("micro_shelf stale_copy often harder")) == 2
    assert len(kinds("micro_shelf stale_copy always harder")) == 3
    assert kinds("micro_shelf stale_copy never simpler") == ["stale_copy"]
