"""Cold-Start trains exactly the tokens that the model writes, through TRL's own trainer."""

from __future__ import annotations

import random

import pytest

torch = pytest.importorskip("torch", reason="fine-tuning needs torch (extra `train`)")
pytest.importorskip("trl", reason="fine-tuning is TRL's (extra `train`)")

from tests.models.tiny import tiny_llama, tiny_tokenizer  # noqa: E402
from tests.training.tiny_policy import sampled_rollouts, tiny_policy  # noqa: E402
from workbench.training.sft import Example, SftSettings, dataset, from_chat, from_rollouts, train  # noqa: E402

CHAT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "list"},
    {"role": "assistant", "content": "```bash\nls\n```"},
    {"role": "user", "content": "a.txt"},
    {"role": "assistant", "content": "done"},
]


def test_a_chat_is_learned_where_the_assistant_speaks_and_nowhere_else():
    tokenizer = tiny_tokenizer()
    example = from_chat(tokenizer, CHAT)
    learned = [i for i, yes in zip(example.ids, example.learned, strict=True) if yes]
    assert tokenizer.decode(learned) == "```bash\nls\n```<|im_end|>done<|im_end|>"
    whole = tokenizer.apply_chat_template(CHAT, tokenize=False).rstrip("\n")
    assert tokenizer.decode(list(example.ids)) == whole
    assert example.labels.count(-100) == len(example.ids) - len(learned)


def test_a_template_that_rewrites_history_is_refused():
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{% if m['role'] != 'assistant' or loop.last %}{{ m['content'] }}|{% endif %}{% endfor %}"
    with pytest.raises(ValueError, match="message 4: the chat template rewrites the history"):
        from_chat(tokenizer, CHAT)
    with pytest.raises(ValueError, match="nothing to learn"):
        from_chat(tokenizer, CHAT[:2])


def test_sampled_ids_are_taken_as_they_are():
    rollouts = sampled_rollouts(tiny_policy(0), 1, 3)
    examples = from_rollouts(rollouts)
    segments = [s for r in rollouts for s in r.segments]
    assert [e.ids for e in examples] == [s.ids for s in segments]
    assert [e.learned for e in examples] == [s.sampled for s in segments]
    row = dataset(examples)[0]
    assert row["input_ids"] == list(segments[0].ids)
    assert [a == b for a, b in zip(row["labels"], row["input_ids"], strict=True)] == list(segments[0].sampled)


def counted(tokens: int, rng: random.Random) -> Example:
    """A prompt of random ids and an answer that counts from 11: learnable at once."""
    ids = [*(rng.randrange(200) for _ in range(4)), *range(11, 11 + tokens)]
    return Example(tuple(ids), tuple([False] * 4 + [True] * tokens))


def test_training_lowers_the_loss_on_what_is_learned_and_leaves_the_rest(tmp_path):
    rng = random.Random(0)
    examples = [counted(rng.randint(2, 6), rng) for _ in range(120)]
    model = tiny_llama()
    settings = SftSettings(learning_rate=1e-2, epochs=3, batch=8, rows=4, warmup_ratio=0.0)
    row = train(model, tiny_tokenizer(), examples, settings, folder=tmp_path)
    assert row["steps"] == 45
    assert row["learned_tokens"] == sum(sum(e.learned) for e in examples)
    assert row["last_loss"] < 0.5 * row["first_loss"]
    with torch.no_grad():
        one = counted(4, rng)
        likely = model.eval()(input_ids=torch.tensor([one.ids])).logits[0].argmax(-1)
    assert likely[4:-1].tolist() == list(one.ids[5:])


def test_the_first_loss_is_that_of_the_learned_tokens_alone(tmp_path):
    rng = random.Random(1)
    examples = [counted(3, rng) for _ in range(4)]
    model = tiny_llama(2)
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([e.ids for e in examples])).logits.log_softmax(-1)
    wanted = (
        -torch.stack([logits[r, t - 1, e.ids[t]] for r, e in enumerate(examples) for t in range(4, 7)]).mean().item()
    )
    settings = SftSettings(learning_rate=0.0, batch=4, rows=4, steps=1)
    row = train(model, tiny_tokenizer(), examples, settings, folder=tmp_path)
    assert row["first_loss"] == pytest.approx(wanted, rel=1e-3)


def test_it_stops_when_told(tmp_path):
    rng, asked = random.Random(0), []
    examples = [counted(3, rng) for _ in range(40)]

    def enough(step):
        asked.append(step)
        return step >= 4

    row = train(
        tiny_llama(),
        tiny_tokenizer(),
        examples,
        SftSettings(batch=4, rows=4, epochs=9),
        folder=tmp_path,
        stop=enough,
        every=2,
    )
    assert (asked, row["steps"]) == ([2, 4], 4)


def test_long_examples_are_left_out_and_counted(tmp_path):
    examples = [counted(3, random.Random(0)), counted(50, random.Random(0))]
    settings = SftSettings(batch=1, rows=1, epochs=1, max_tokens=20)
    row = train(tiny_llama(), tiny_tokenizer(), examples, settings, folder=tmp_path)
    assert (row["examples"], row["left_out"]) == (1, 1)
    with pytest.raises(ValueError, match="nothing to train on"):
        train(tiny_llama(), tiny_tokenizer(), examples[1:], settings, folder=tmp_path)
