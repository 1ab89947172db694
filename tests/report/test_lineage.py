"""Parents and children: found, laid out, drawn."""

from __future__ import annotations

import pytest

from workbench.report.lineage import MOST_DRAWN, RING, SEED, draw_lineage, lineage_of, places, png


def environments(**parents: str) -> dict[str, dict]:
    return {
        k: {"task": f"task-{k}", "digest": f"d-{k}", "parent": p, "status": "active", "mean": 0.5}
        for k, p in parents.items()
    }


def test_parents_by_digest_by_name_and_from_seeds():
    rows = environments(a="hello", b="task-a", c="a", d="task-b", e="")
    rows["f"] = {"parent": "task-a", "status": "rejected"}
    made = lineage_of(rows, {"f": {"parent_digest": "d-b"}})
    assert made.parent == {"a": f"{SEED}hello", "b": "a", "c": "a", "d": "b", "f": "b"}
    assert set(made.roots) == {f"{SEED}hello", "e"}
    assert made.ancestors("d") == ["b", "a", f"{SEED}hello"]
    assert made.family("b") == ["b", "a", f"{SEED}hello", "d", "f"]


def test_of_two_of_one_name_the_latest_before_it_is_the_parent():
    rows = environments(a="x", b="x")
    rows["a"]["task"] = rows["b"]["task"] = "same"
    rows["c"] = {"parent": "same"}
    assert lineage_of(rows, {}).parent["c"] == "b"


def test_one_that_names_itself_has_no_circle():
    made = lineage_of(
        {"a": {"task": "a", "parent": "a"}, "b": {"task": "b", "parent": "c"}, "c": {"task": "c", "parent": "b"}}, {}
    )
    assert made.parent == {"a": f"{SEED}a", "b": f"{SEED}c", "c": "b"}
    assert made.ancestors("c") == ["b", f"{SEED}c"]


def test_no_two_stand_at_one_place_and_children_stand_to_the_right():
    made = lineage_of(environments(a="s", b="a", c="a", d="b", e="b", f="c", g="s2"), {})
    at = places(made, list(made.status))
    assert len(set(at.values())) == len(at) == 9
    for child, parent in made.parent.items():
        assert at[child][0] == at[parent][0] + 1


def test_a_chain_of_thousands_is_laid_out_without_recursion():
    names = [f"n{i}" for i in range(5000)]
    made = lineage_of({n: {"task": n, "parent": names[i - 1] if i else ""} for i, n in enumerate(names)}, {})
    assert len(made.ancestors("n4999")) == 4999
    assert max(x for x, _ in places(made, names).values()) == 4999
    assert len(made.family("n4999")) == MOST_DRAWN


def test_the_drawing_says_what_it_leaves_out():
    made = lineage_of(environments(**{f"k{i}": "hello" for i in range(200)}), {})
    fig, table = draw_lineage(made, marked="k3")
    assert len(table) == MOST_DRAWN
    assert "121 others not drawn" in fig.axes[0].get_title("left")
    assert png(fig) == png(draw_lineage(made, marked="k3")[0])


@pytest.mark.parametrize("name", ["$\\frac{1", "\u202e\x1b", "<script>", "漢字" * 500])
def test_any_name_can_be_drawn(name):
    made = lineage_of({name: {"task": name, "parent": name, "status": name, "mean": 0.5}}, {})
    assert png(draw_lineage(made)[0]).startswith(b"\x89PNG")
    assert png(draw_lineage(lineage_of({}, {}))[0]).startswith(b"\x89PNG")


def test_the_ring_around_the_marked_one_leaves_its_name_readable():
    made = lineage_of(environments(first="hello", second="first"), {})
    fig, _ = draw_lineage(made, marked="first")
    fig.draw_without_rendering()
    (axes,) = fig.axes
    ring = next(c for c in axes.collections if c.get_sizes()[0] == RING)
    at = axes.transData.transform(ring.get_offsets()[0])
    name = next(t for t in axes.texts if "first" in t.get_text())
    assert name.get_window_extent().x0 > at[0] + RING**0.5 / 2 * fig.dpi / 72
