"""Partition the columns of a CSV file with Khiops, in the interpreter that has it, for `benchmarks.engines`.

Khiops is asked for what ``MODLDiscretizer`` does, its preparation of each variable alone, on all rows.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path


def main(path: Path, target: str, folder: Path) -> None:
    """Print CPU seconds, seconds and the level of each column on a line that starts with RESULT."""
    from khiops import core as kh

    dictionary = folder / "table.kdic"
    kh.build_dictionary_from_data_table(str(path), "table", str(dictionary), field_separator=",")
    domain = kh.read_dictionary_file(str(dictionary))
    for variable in domain.dictionaries[0].variables:
        # Classes written as numbers are categories; the other target is no column.
        variable.used = variable.name.startswith("x") or variable.name == target
        variable.type = "Categorical" if variable.name == target else variable.type
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    report = folder / "report.khj"
    kh.train_predictor(
        domain,
        "table",
        str(path),
        target,
        str(report),
        field_separator=",",
        sample_percentage=100,
        use_complement_as_test=False,
        do_data_preparation_only=True,
        max_constructed_variables=0,
        max_trees=0,
        max_text_features=0,
        max_cores=1,
    )
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(getattr(after, k) - getattr(before, k) for k in ("ru_utime", "ru_stime"))
    found = kh.read_analysis_results_file(str(report)).preparation_report.variables_statistics
    levels = {one.name: one.level for one in found}
    print("RESULT " + json.dumps({"cpu": cpu, "seconds": seconds, "levels": levels}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
