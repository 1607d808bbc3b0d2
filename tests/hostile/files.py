"""Files of any bytes, and saved models that were spoilt."""

from __future__ import annotations

import json
import random
import tempfile
import warnings
from pathlib import Path

from damier.deploy.json import dumps, loads
from damier.intake import read_file
from damier.models.codec import find_kinds
from tests.deploy import test_mutations as spoilt
from tests.hostile.odd import FLOATS, INTS, TEXTS
from tests.hostile.promises import Broken, only_our_warnings, refused

_READING = {
    "separator": [",", ";", "tab", "", "ab", "\0", "é", '"', "\n", "\ud800"],
    "encoding": ["utf-8", "cp1252", "utf-16", "rot13", "no such", "", "\0"],
    "decimal": [".", ",", "", "x"],
    "missing": [["1"], ["", "x"], ["\ud800"]],
    "categorical": [["x0"], ["no such"]],
    "numeric": [["x0"], ["y1"]],
    "drop": [["x0"], ["x0", "y1"]],
    "only": [["x0"], ["no such"]],
    "header": [True, False],
}


def _reading(chance):
    """Options of `read_file`, in half of the cases none."""
    named = chance.sample(sorted(_READING), chance.choice([0, 0, 1, 3]))
    return {name: chance.choice(_READING[name]) for name in named}


def try_file(seed):
    """Read a file of any bytes: a table, or one sentence."""
    chance = random.Random(seed)
    separator = chance.choice([",", ";", "\t", "|", ",", " "])
    cells = [
        *TEXTS[:6],
        *map(str, FLOATS),
        *map(str, INTS),
        "1,5",
        "2020-01-01",
        "€ 3",
        "n.d.",
        '"q"',
        "a\nb",
        "-",
        "1e999",
    ]
    width = chance.randint(1, 5)
    rows = [[chance.choice(["x", "y", "", "count", "é"]) + str(j) for j in range(width)]]
    rows += [[chance.choice(cells) for _ in range(width)] for _ in range(chance.choice([0, 1, 3, 30]))]
    quote = chance.random() < 0.5
    text = chance.choice(["\n", "\r\n", "\r"]).join(
        separator.join(f'"{c}"' if quote and chance.random() < 0.5 else c for c in row) for row in rows
    )
    data = bytearray(
        text.encode(chance.choice(["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-32"]), errors="replace")
    )
    for _ in range(chance.choice([0, 0, 1, 3, 20])):
        at = chance.randint(0, len(data))
        action = chance.randint(0, 3)
        if action == 0:
            data[at : at + 1] = bytes([chance.randint(0, 255)])
        elif action == 1:
            data[at:at] = chance.choice([b'"', b"\0", b"\xff\xfe", b"\n", b"\r", b",,,", b"\x1a", b"'"])
        elif action == 2:
            del data[at:]
        else:
            data += data[: chance.randint(0, 200)]
    ending = chance.choice(
        [".csv", ".csv", ".csv", ".tsv", ".txt", ".csv.gz", ".csv.zst", ".parquet", ".xlsx", ".feather"]
    )
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        file = Path(folder, f"t{ending}")
        file.write_bytes(data)
        try:
            table = read_file(file, **_reading(chance))
        except ImportError as error:  # a library for this kind is not installed
            if "install" not in str(error):
                raise Broken(str(error)) from error
        except Exception as error:
            refused(error)
        else:
            if any(len(c.coded()[1]) != table.n_rows for c in table):
                raise Broken("columns of different lengths")
        only_our_warnings(caught)


def try_model(seed):
    """Load a spoilt model: refused in our words, or it scores as a model does."""
    chance = random.Random(seed)
    kinds = sorted(find_kinds())
    kind = kinds[seed % len(kinds)]
    plain = spoilt.spoil(json.loads(dumps(spoilt.MODELS[kind])), chance)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            model = loads(json.dumps(plain))
        except ValueError as error:
            if not str(error).startswith(("not a saved model", "saved by a later version")):
                raise Broken(str(error)) from error
            return
        spoilt.check_scores(model)
