from __future__ import annotations

import math
import re

import pandas as pd
import pytest

from workbench.report import published

NAMES = published.names()


@pytest.mark.parametrize("name", NAMES)
def test_every_file_keeps_to_the_format(name):
    table = published.load(name)
    assert re.fullmatch(r"(autoenvscaling|tev)_(fig|table)_\d\d(_\w+)?", name)
    assert set(table["source"]) == {"Tev" if name.startswith("tev") else "AutoEnvScaling"}
    assert not table.duplicated(["row", "column"]).any()
    assert (table[["place", "row", "column"]] != "").all(axis=None)
    shares = table[table["unit"] == "fraction"]["number"].dropna()
    assert shares.between(0, 1).all()
    percent = table[(table["unit"] == "%") & (table["column"] != "collection time")]["number"].dropna()
    assert percent.between(0, 150).all()
    assert not table["value"].str.contains(r"[%$∗]").any()  # as plain numbers


def test_published_gains_are_the_differences_of_published_values():
    """The text of Tev prints both; a slip of the pen in either would show."""
    ms = ("S@1", "S@5", "P@1", "P@5")
    gains = {("Tev-9B", "Qwen3.5-9B"): (0.04, 0.07, 0.01, 0.05), ("Tev-27B", "Qwen3.8-27B"): (0.07, 0.11, 0.04, 0.11)}
    for (tuned, base), told in gains.items():
        for measure, gain in zip(ms, told, strict=True):
            cells = [published.value("tev_table_02", model, f"All {measure}") for model in (tuned, base)]
            assert cells[0] - cells[1] == pytest.approx(gain, abs=1e-9)
    for column in ("P@1", "P@5"):
        tuned, base = (published.value("tev_table_03", m, f"TB 4.0 All {column}") for m in ("Tev-27B", "Qwen3.8-27B"))
        assert tuned - base == pytest.approx(0.06)


def test_tables_that_share_cells_agree():
    for number, suite in ((14, "TB 3.0"), (15, "TB 4.0")):
        table = published.load(f"tev_table_{number}")
        for _, cell in table[table["column"].isin(["subset P@1", "subset P@5"])].iterrows():
            column = f"{suite} All {cell['column'].split()[1]}"
            assert published.value("tev_table_03", cell["row"], column) == cell["number"], cell["row"]
    for _, cell in published.load("tev_table_16").iterrows():
        if cell["column"].startswith("split"):
            assert published.value("tev_table_02", cell["row"], f"All {cell['column'].split()[1]}") == cell["number"]


def test_derived_cells_are_what_their_note_says():
    derived = 0
    for name in NAMES:
        for _, cell in published.load(name).iterrows():
            if found := re.match(r"derived: ([\d.]+) - ([\d.]+)", cell["note"]):
                assert float(found[1]) - float(found[2]) == pytest.approx(cell["number"]), (name, cell["row"])
                derived += 1
    assert derived >= 7


def test_a_cell_that_the_text_lacks_is_empty_and_not_zero():
    assert math.isnan(published.value("autoenvscaling_table_03", "Qwen3.5-9B | GPT-5.6-sol", "no solver feedback"))
    cell = published.grid("autoenvscaling_table_03").set_index("row").loc["Qwen3.5-9B | GPT-5.6-sol"]
    assert cell["no solver feedback"] == ""
    assert cell["full"] == "33.5"


def test_what_is_not_there_is_told():
    with pytest.raises(ValueError, match=r"no published table .tev_table_99. in .*tev_table_05"):
        published.load("tev_table_99")
    with pytest.raises(ValueError, match="no cell 'x'"):
        published.value("tev_table_05", "x", "S@1")


def test_a_file_with_other_columns_is_refused(tmp_path):
    (tmp_path / "tev_table_05.csv").write_text("row,column,value\na,b,1\n")
    with pytest.raises(ValueError, match=r"tev_table_05\.csv: its columns are row, column, value, not source"):
        published.load("tev_table_05", tmp_path)


def test_ours_stands_beside_the_published_cell(tmp_path):
    (tmp_path / "tev_table_05.csv").write_text(
        "source,place,row,column,value,unit,note\nTev,Table 5,a,S@1,0.25,fraction,\nTev,Table 5,a,S@5,,fraction,not told in the text\n"
    )
    ours = pd.DataFrame(
        [["b", "S@1", 0.5, "new"], ["a", "S@5", 0.75, "n = 4"]], columns=["row", "column", "value", "note"]
    )
    table = published.beside("tev_table_05", ours, tmp_path)
    assert table.to_dict("records") == [
        {"row": "a", "column": "S@1", "unit": "fraction", "published": "0.25", "ours": "", "note": ""},
        {"row": "a", "column": "S@5", "unit": "fraction", "published": "", "ours": 0.75, "note": "not told in the text; n = 4"},
        {"row": "b", "column": "S@1", "unit": "", "published": "", "ours": 0.5, "note": "new"},
    ]  # fmt: skip
