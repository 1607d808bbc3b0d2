"""Some 5,000 hostile inputs, by kind; ``python -m benchmarks.hostile`` tries more."""

from __future__ import annotations

import sys

import pytest

from tests.hostile.generators import KINDS, PAYLOADS, Broken, refused, try_page

N_CASES = {"tables": 600, "files": 600, "models": 2500, "pages": 400, "terminal": 1000}
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
    from tests.hostile import generators

    whole = generators.render_page
    monkeypatch.setattr(
        generators,
        "render_page",
        lambda summary: whole(summary).replace("</main>", summary["dataset"]["name"]),
    )
    with pytest.raises(Broken):
        try_page(0)
