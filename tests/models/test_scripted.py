from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from workbench.models import Model, ModelError, Reply, get_model
from workbench.models.scripted import Scripted


def said(role, content):
    return {"role": role, "content": content}


def test_each_conversation_follows_the_script_on_its_own():
    model = Scripted(["one", "two", "two", "end"])

    def talk(i):
        messages, heard = [said("user", f"task {i}")], []
        for _ in range(4):
            heard.append(model.reply(messages).text)
            messages += [said("assistant", heard[-1]), said("user", "go on")]
        return heard

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(talk, range(16))) == [["one", "two", "two", "end"]] * 16
    assert len(model.calls) == 64


def test_worked_examples_before_the_task_are_not_counted():
    messages = [said("user", "example"), said("assistant", "its answer"), said("user", "task")]
    assert Scripted(["first"]).reply(messages).text == "first"


def test_past_its_end_it_says_so():
    with pytest.raises(ModelError, match="1 replies, and reply 2"):
        Scripted(["a"]).reply([said("user", "x"), said("assistant", "a"), said("user", "y")])


def test_a_function_of_the_messages_and_ready_replies():
    model = Scripted(lambda messages: Reply(messages[-1]["content"].upper(), finish="length"))
    assert isinstance(model, Model)
    assert model.reply([said("user", "x")]) == Reply("X", finish="length")


def test_from_a_file(tmp_path):
    path = tmp_path / "script.json"
    path.write_text(json.dumps(["a", {"text": "b", "finish": "length"}]))
    model = get_model(f"scripted:{path}")
    assert model.reply([said("user", "x")]).text == "a"
    assert model.reply([said("user", "x"), said("assistant", "a"), said("user", "y")]).finish == "length"


@pytest.mark.parametrize("text", ["{", '[{"words": 1}]', "3"])
def test_a_wrong_file_is_named(tmp_path, text):
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(ModelError, match=r"script\.json"):
        get_model(f"scripted:{path}")


@pytest.mark.parametrize("spec", ["", "gpt", "transformers:", "litellm", "scripted:"])
def test_an_unknown_model_lists_the_known_kinds(spec):
    with pytest.raises(ValueError, match="use smollm2"):
        get_model(spec)


def test_an_unknown_option_points_to_the_documentation(tmp_path):
    (tmp_path / "s.json").write_text("[]")
    with pytest.raises(ValueError, match=r"docs/models\.md"):
        get_model(f"scripted:{tmp_path / 's.json'}", colour="red")


def test_caps_by_option(tmp_path):
    (tmp_path / "s.json").write_text('["a"]')
    model = get_model(f"scripted:{tmp_path / 's.json'}", usd=1.0, calls=3)
    assert (model.budget.usd, model.budget.calls) == (1.0, 3)
