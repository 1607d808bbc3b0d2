"""Some 5,000 hostile inputs, by kind; ``python -m benchmarks.hostile`` tries more."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from damier.deploy.json import loads
from damier.intake import read_file
from damier.intake.printable import printable
from tests.hostile.generators import KINDS
from tests.hostile.pages import PAYLOADS, try_page
from tests.hostile.promises import OBEYED, Broken, refused

N_CASES = {
    "tables": 600,
    "sources": 150,
    "files": 500,
    "models": 2500,
    "pages": 400,
    "terminal": 700,
    "commands": 300,
}
PARTS = 4


def test_there_are_enough_payloads():
    assert len(set(PAYLOADS)) >= 271
    assert N_CASES["pages"] >= len(PAYLOADS)
    assert sum(N_CASES.values()) >= 5000


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("kind", N_CASES)
def test_hostile_inputs(kind, part):
    for seed in range(part, N_CASES[kind], PARTS):
        try:
            KINDS[kind](seed)
        except Exception as error:
            error.add_note(f"KINDS[{kind!r}]({seed})")
            raise


# Evidence has a column per class and turns with their order; a separator of two characters; a folder with too
# long a name; a model written anew.
FOUND_BY_LONG_RUNS = [
    *(("tables", seed) for seed in (6340, 7069, 21681)),
    ("files", 1446),
    *(("commands", seed) for seed in (437, 644)),
    *(("sources", seed) for seed in (698, 1304, 2435)),  # both mistakes of the check
]


@pytest.mark.parametrize(("kind", "seed"), FOUND_BY_LONG_RUNS)
def test_what_long_runs_found(kind, seed):
    KINDS[kind](seed)


@settings(max_examples=200, deadline=None)
@given(st.text(), st.binary(max_size=300))
def test_any_text_and_any_bytes(text, data):
    assert not OBEYED.search(printable(text))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "t.csv")
        file.write_bytes(data)
        try:
            table = read_file(file)
        except Exception as error:
            refused(error)
        else:
            assert all(len(column.coded()[1]) == table.n_rows for column in table)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda o: st.lists(o) | st.dictionaries(st.text(), o),
    )
)
def test_any_json_as_a_model(held):
    with pytest.raises(ValueError, match="not a saved model"):
        loads(json.dumps(held))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of Unix")
@pytest.mark.parametrize("seed", range(4))
def test_ctrl_c_at_any_time(seed):
    KINDS["signals"](seed)


def test_the_checks_can_fail(monkeypatch):
    try:
        int("x")
    except ValueError as error:
        with pytest.raises(Broken):
            refused(error)  # raised here, not by Damier
    from tests.hostile import pages

    whole = pages.render_page
    monkeypatch.setattr(
        pages,
        "render_page",
        lambda summary, **more: whole(summary, **more).replace("</main>", summary["dataset"]["name"]),
    )
    with pytest.raises(Broken):
        try_page(0)
