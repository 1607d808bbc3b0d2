"""No command needs scikit-learn, whose import takes longer than most of them."""

from __future__ import annotations

import subprocess
import sys

TABLE = "age,plan,spent,left\n" + "".join(
    f"{20 + 7 * i % 40 + 9 * (i % 2)},{'abc'[i % 3]},{i % 13}.5,{'yes' if i % 2 else 'no'}\n"
    for i in range(300)
)
# Each runs after those before it, in one process: what one of them imports shows on its line.
COMMANDS = (
    "report t.csv -t left --grid 1 -o page.html --json report.json --save-model averaged.json",
    "report t.csv -t spent --target-type number --grid 1 -o number.html",
    "fit t.csv -t left -o model.json",
    "fit t.csv -t left -o counted.json --memory 0GB",
    "fit t.csv -t spent -o number.json",
    "fit t.csv -t spent -o counted-number.json --memory 0GB",
    "predict model.json t.csv -o scored.csv",
    "predict number.json t.csv -o scored-number.csv",
    "sql model.json -d duckdb --table t",
    "cocluster t.csv --rows age --columns plan -o clusters.html",
)
PROGRAM = """
import sys
from damier.__main__ import main
for line in sys.stdin.read().splitlines():
    sys.argv[1:] = line.split()
    try:
        main()
    except SystemExit as end:
        assert not end.code, line
    print("\\n" + line, "imports", {"sklearn", "scipy.stats"} & set(sys.modules), file=sys.stderr)
"""


def test_no_command_imports_scikit_learn(tmp_path):
    (tmp_path / "t.csv").write_text(TABLE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        input="\n".join(COMMANDS),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if " imports " in line]
    assert said == [f"{line} imports set()" for line in COMMANDS], done.stderr
