from __future__ import annotations

import importlib.util
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from training_rows import evaluation_row, proposer_row, rollout_row, update_row, write

from workbench.report import paper_figures, paper_figures_page, paper_figures_tev, published
from workbench.report import paper_figures_traces as traces
from workbench.report.figures import Saved, save_figure
from workbench.report.paper_figures_sources import Sources, chosen_runs, default_runs
from workbench.runs import new_run

ROOT = Path(__file__).resolve().parent.parent.parent
BY_NAME = {a.name: a for a in paper_figures.artefacts()}
DRAWINGS = {"AutoEnvScaling": {2, *range(9, 20)}, "Tev": {1, 3, 6}}  # illustrations; Tev's Figure 1 repeats Tables 2–4


def test_every_table_and_figure_of_both_papers_is_in_the_list():
    for paper, figures, tables in (("AutoEnvScaling", 24, 13), ("Tev", 9, 17)):
        there = {kind: {int(a.name.split("_")[2]) for a in BY_NAME.values() if a.paper == paper and f"_{kind}_" in a.name} for kind in ("fig", "table")}  # fmt: skip
        assert there["fig"] | DRAWINGS[paper] == set(range(1, figures + 1))
        assert not there["fig"] & DRAWINGS[paper]
        words = {1} if paper == "AutoEnvScaling" else set()  # AutoEnvScaling's Table 1 compares methods in words
        assert there["table"] == set(range(1, tables + 1)) - words


@pytest.mark.parametrize("artefact", BY_NAME.values(), ids=BY_NAME)
def test_the_quoted_cells_are_published_and_the_command_is_one(artefact):
    for row, column in artefact.cells:
        published.value(artefact.name, row, column)  # raises when there is no such cell
    assert artefact.command == "–" or re.match(r"workbench run \d\d_\w+", artefact.command)
    assert (artefact.command != "–") or artefact.why, "without a command there is a reason"


@pytest.fixture
def trained(tmp_path):
    """A small flywheel of two arms, as journals hold it."""
    folder, made = tmp_path / "flywheels", []
    for arm, reward in (("full", 0.75), ("static-pool", 0.5)):
        run = new_run("40_flywheel", {"arm": arm, "profile": "micro", "group": 4}, results=folder).begin()
        write(
            run,
            "update",
            [update_row(s, arm, proposer=proposer_row(5) if arm == "full" and s == 2 else None) for s in (1, 2)],
        )
        write(
            run,
            "evaluation",
            [evaluation_row(0, {"a": [0.0, 0.5]}, arm), evaluation_row(2, {"a": [reward, reward]}, arm)],
        )
        write(
            run, "rollout", [rollout_row("g-0", "g", [0.1, 0.4]), rollout_row("g-1", "g", [0.2, 0.9], submitted=True)]
        )
        run.write_status("done", 0)
        run.close()
        made.append(run)
    return made


def test_ours_stands_beside_the_papers(trained, run):
    names = [
        "autoenvscaling_fig_06",
        "autoenvscaling_table_03",
        "autoenvscaling_fig_20",
        "tev_fig_04",
        "tev_table_05",
        "tev_table_11",
    ]
    results = paper_figures.draw(run, Sources(trained), paper_figures.named(names))
    found = {r.artefact.name: r for r in results}
    assert {r.status for r in results} == {"ours"}
    assert found["autoenvscaling_fig_06"].ours == "held-out seeds, full: 25.0 → 75.0 % in 2 updates; held-out seeds, static pool (Tmax): 25.0 → 50.0 % in 2 updates"  # fmt: skip
    assert found["tev_fig_04"].ours.startswith(
        "2 rollouts of d-task; of 2 groups 2 without variance of terminal reward, 2 with"
    )
    table = pd.read_csv(found["autoenvscaling_table_03"].saved, keep_default_na=False)
    mine = table[table["ours"] != ""]
    assert mine["published"].eq("").all()  # another task set: never in the paper's cell
    assert mine.set_index("column")["ours"].to_dict() == {"full": "75.0", "static pool (Tmax)": "50.0"}
    assert isinstance(found["autoenvscaling_fig_20"].saved, Saved)
    shown = paper_figures.tables(results)
    assert len(shown) == 3
    assert all((t["ours"] != "").all() for t in shown.values())


def test_without_runs_nothing_is_invented(run):
    needing = ["autoenvscaling_fig_04", "autoenvscaling_fig_07", "autoenvscaling_fig_22", "tev_fig_04"]
    results = paper_figures.draw(run, Sources([]), paper_figures.named(needing))
    assert {r.status for r in results} == {"nothing"}
    assert all("`workbench run" in r.why and r.saved is None for r in results)
    assert not list((run.folder / "figures").iterdir())
    beside = paper_figures.draw(
        run, Sources([]), paper_figures.named(["autoenvscaling_table_13", "autoenvscaling_fig_21"])
    )
    assert {r.status for r in beside} == {"published only"}
    assert "`workbench run 30_cold_start`" in beside[0].why
    table = pd.read_csv(beside[0].saved, keep_default_na=False)
    assert (table["ours"] == "").all()
    assert (table["published"] == "").any(), "what the text lacks stays empty"


def test_a_wrong_name_is_told(run):
    with pytest.raises(ValueError, match=r"no figure or table .autoenvscaling_fig_99.: there are .*tev_table_17"):
        paper_figures.named(["autoenvscaling_fig_99"])


@pytest.mark.parametrize("name", paper_figures_tev.PAIRS)
def test_the_printed_correlations_come_out_of_the_printed_cells(name):
    """Tev C.2 prints them with two digits; ours are computed from cells of two digits."""
    _, table = paper_figures_tev.representativeness(name)
    found = table[table["model"].isin(["Pearson", "Spearman"])]
    assert len(found) == 4
    for _, row in found.iterrows():
        assert row["subset"] == pytest.approx(row["full"], abs=0.006), row["measure"]


@pytest.mark.parametrize("name", paper_figures_tev.PAIRS)
def test_numbers_of_models_lie_on_no_other(name):
    figure, _ = paper_figures_tev.representativeness(name)
    figure.draw_without_rendering()
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in ax.texts]
        assert boxes
        assert not [(a, b) for a, b in itertools.combinations(boxes, 2) if a.overlaps(b)]


def test_the_ranking_recomputes_the_told_gains():
    _, table = paper_figures_tev.ranking()
    assert table["model"].iloc[0] == "Claude Opus 5"
    gains = table.set_index("model")["gain"]
    assert (gains["Tev-27B"], gains["Tev-320B"]) == (150, 28)  # abstract and §1
    for model, gain in (("Tev-27B", 150), ("Tev-320B", 28)):
        assert published.value("tev_fig_02", model, "gain over base") == gain


def test_traced_decisions_come_from_chosen_moments():
    found = Sources([]).labelled
    table = traces.decisions(found, "config-merge")
    chosen = found.moments[found.moments["episode"].isin(set(table["episode"]))]
    assert len(table) == len(chosen) > 0
    assert set(table["label"]) <= {"read", "build", "write", "test"}
    scores = traces.traced_scores(found)
    assert len(scores) == len(found.episodes)
    assert scores["turns"].sum() == len(found.turns)


@pytest.mark.slow
def test_all_of_it_has_the_same_bytes_twice(trained, run):
    def drawn():
        results = paper_figures.draw(run, Sources(trained))
        files = [
            p
            for r in results
            if r.saved
            for p in ((r.saved.png, r.saved.svg, r.saved.csv) if isinstance(r.saved, Saved) else (r.saved,))
        ]
        return {p.name: p.read_bytes() for p in files}

    assert drawn() == drawn()


def test_equal_traces_give_equal_bytes(run):
    fig = [traces.traced(Sources([]).labelled, "config-merge") for _ in range(2)]
    first = save_figure(run, "traced", *fig[0]).svg.read_bytes()
    assert save_figure(run, "traced", *fig[1]).svg.read_bytes() == first


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("row,column,unit,published,ours,note\nML,environments,,264,,\nML,stages,,6,5,\n", "ML stages 5"),
        ("generator,gate,passed,of\na,x,1,1\na,y,0,1\n", "1 of 2 passed"),
        ("number,this corpus\ntasks,2\nrollouts,4\n", "tasks 2, rollouts 4"),
        ("corpus,row,tasks,hits,more\nours,tasks,14,0,1\n", "corpus ours, row tasks, tasks 14, hits 0, …"),
    ],
)
def test_a_saved_table_of_another_notebook_is_told_in_a_few_words(tmp_path, run, text, said):
    with new_run("60_worlds", {}, results=tmp_path) as worlds:
        worlds.path("tables", "composition.csv").write_text(text)
        (result,) = paper_figures.draw(run, Sources([worlds]), paper_figures.named(["tev_table_08"]))
        assert result.ours == f"{said} (run {worlds.id})"


def finished(results: Path, notebook: str, state: str = "done", **parameters) -> str:
    run = new_run(notebook, parameters, results=results)
    run.write_status(state, 0 if state == "done" else 1)
    return run.id


def test_default_runs_are_the_newest_finished_of_each_notebook_and_arm(tmp_path, monkeypatch):
    import itertools

    from workbench.runs import folder

    clock = itertools.count()
    monkeypatch.setattr(folder.secrets, "token_hex", lambda _: f"{next(clock):04x}")
    finished(tmp_path, "40_flywheel", arm="full", profile="micro")
    full = finished(tmp_path, "40_flywheel", arm="full", profile="small")
    static = finished(tmp_path, "40_flywheel", arm="static-pool", profile="small")
    finished(tmp_path, "40_flywheel", "failed", arm="full", profile="small")
    worlds = finished(tmp_path, "60_worlds", profile="micro")
    finished(tmp_path, "90_paper_figures", profile="micro")
    assert sorted(r.id for r in default_runs(tmp_path)) == sorted([full, static, worlds])
    for name in ("40_flywheel", "20_compare_proposers"):
        target = tmp_path / "published" / f"{name}-micro"
        target.mkdir(parents=True)
        params = {"notebook": name, "run_id": f"published-{name}", "parameters": {"profile": "micro"}}
        (target / "params.json").write_text(json.dumps(params))
    assert {r.id for r in default_runs(tmp_path)} == {full, static, worlds, "published-20_compare_proposers"}


def test_runs_are_chosen_by_folder(trained):
    assert [r.id for r in chosen_runs([str(trained[1].folder)])] == [trained[1].id]


# -- docs/reproduction.md ------------------------------------------------------------------------------------------------


def test_the_page_is_current():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_reproduction.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_page_takes_ours_from_published_summaries(tmp_path):
    for profile, said in (("micro", "12 %"), ("small", "34 | %")):
        folder = tmp_path / "published" / f"90_paper_figures-{profile}"
        (folder / "tables").mkdir(parents=True)
        (folder / "params.json").write_text(
            json.dumps({"notebook": "90_paper_figures", "parameters": {"profile": profile}})
        )
        (folder / "tables" / "summary.csv").write_text(
            f"name,place,title,status,ours,why\nautoenvscaling_fig_07,,,ours,{said},\n"
        )
    other = tmp_path / "published" / "40_flywheel-micro"
    (other / "tables").mkdir(parents=True)
    (other / "params.json").write_text(json.dumps({"notebook": "40_flywheel", "parameters": {}}))
    (other / "tables" / "summary.csv").write_text("name,ours\nautoenvscaling_fig_07,wrong\n")
    (line,) = [row for row in paper_figures_page.table(tmp_path).splitlines() if "AutoEnvScaling Figure 7 " in row]
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    assert len(cells) == len(paper_figures_page.HEAD)
    assert cells[5:7] == ["12 %", "small: 34 / %"]


def test_publishing_keeps_no_path_of_the_machine(tmp_path):
    spec = importlib.util.spec_from_file_location("make_reproduction", ROOT / "scripts" / "make_reproduction.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    with new_run("90_paper_figures", {"profile": "micro", "runs": [str(tmp_path)]}, results=tmp_path) as made:
        made.path("tables", "summary.csv").write_text("name,ours\ntev_fig_04,8 rollouts\n")
    target = script.publish(str(made.folder), tmp_path / "published")
    assert paper_figures_page.summaries(tmp_path) == {"micro": {"tev_fig_04": "8 rollouts"}}
    text = (target / "params.json").read_text()
    assert str(tmp_path) not in text
    assert sys.executable not in text
    with new_run("40_flywheel", {"profile": "micro"}, results=tmp_path) as other:
        other.path("tables", "pool.csv").write_text(f"path\n{other.folder}/tasks/a\n")
        other.path("figures", "pool.png").write_bytes(b"\x89PNG")
        other.path("figures", "pool.svg").write_text("large")
    other.write_status("failed", 1, "cell 3")
    with pytest.raises(ValueError, match="is no finished run: failed"):
        script.publish(str(other.folder), tmp_path / "published")
    other.write_status("done", 0)
    target = script.publish(str(other.folder), tmp_path / "published")
    assert sorted(p.name for p in target.rglob("*.*")) == ["params.json", "pool.csv", "pool.png"]
    assert (target / "tables" / "pool.csv").read_text() == f"path\n{other.id}/tasks/a\n"
    with new_run("40_flywheel", {}, results=tmp_path) as bare:
        pass
    with pytest.raises(ValueError, match="has nothing to publish"):
        script.publish(str(bare.folder), tmp_path / "published")


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="no lines"):
        paper_figures_page.page("# hello\n")
