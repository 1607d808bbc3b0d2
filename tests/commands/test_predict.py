"""The command ``damier predict``: saved models applied to files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import damier
from damier.cli import app
from damier.commands.tables import write_table
from damier.deploy import load, save

N = 200


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def customers(seed=0, n=N):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "id": [f"{i:05d}" for i in range(n)],
            "age": rng.integers(20, 50, n) + 12 * y,
            "spent": np.round(rng.gamma(2.0, 30.0 + 40.0 * y), 2),
            "plan": rng.choice(["basic", "gold", "=1+1"], n),
            "code": np.where(rng.random(n) < 0.8, np.where(y == 1, "7", "x9"), "12"),
            "left": np.where(y == 1, "yes", "no"),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("predict")
    customers().to_csv(folder / "train.csv", index=False)
    customers(1).to_csv(folder / "new.csv", index=False)
    done = run(
        *("report", folder / "train.csv", "-t", "left", "-o", folder / "page.html", "--grid", "0"),
        *("--drop", "id", "--no-classifier", "--labels", "brackets"),
        *("--save-model", folder / "model.json", "--parts", folder / "parts.csv"),
    )
    assert done.exit_code == 0, done.output
    return folder


def numbers(frame, classes):
    return frame[[f"probability {c}" for c in classes]].astype(object).map(float).to_numpy(float)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_probabilities_are_those_of_the_model_to_the_last_digit(folder, kind):
    out = folder / f"scored.{kind}"
    done = run("predict", folder / "model.json", folder / "new.csv", "-o", out)
    assert done.exit_code == 0, done.output
    assert "200 rows written" in done.output
    told = pd.read_csv(out, dtype=str) if kind == "csv" else pd.read_parquet(out)
    model = load(folder / "model.json")
    new = customers(1)
    assert list(told) == ["predicted", "probability no", "probability yes"]
    np.testing.assert_array_equal(numbers(told, model.classes), model.predict_proba(new))
    np.testing.assert_array_equal(told["predicted"], model.predict(new))
    assert (told["predicted"] == new["left"]).mean() > 0.7


def test_the_saved_model_is_the_averaged_naive_bayes_of_all_columns(folder):
    from damier.fit.averaged import evidence_of_column
    from damier.fit.naive_bayes import naive_bayes, weight_with_pairs
    from damier.fit.partitions import partition_column
    from damier.intake import read_target
    from damier.intake.files import read_file
    from damier.search.run import Run

    table = read_file(folder / "train.csv")
    target = read_target(customers()["left"])
    inputs = table.drop("left").drop("id")
    best = [partition_column(c, target, short_bounds=True) for c in inputs]
    run = Run()

    def fit():
        found = [evidence_of_column(inputs, k, target, partition) for k, partition in enumerate(best)]
        return weight_with_pairs(found, inputs, target, pairs="auto", run=run)

    variables, pairs = run.call(fit)
    expected = naive_bayes(variables, target, pairs=pairs)
    assert load(folder / "model.json") == expected


def test_reasons_and_kept_columns(folder):
    out = folder / "explained.csv"
    done = run(
        "predict", folder / "model.json", folder / "new.csv", "-o", out, "--explain", "--keep", "id,age,plan"
    )
    assert done.exit_code == 0, done.output
    told, new = pd.read_csv(out, dtype={"id": str}), customers(1)
    assert list(told)[:3] == ["id", "age", "plan"]
    assert list(told)[-3:] == ["reason 1", "reason 2", "reason 3"]
    assert (told["id"] == new["id"]).all()
    assert (told["age"] == new["age"]).all()
    assert set(told["plan"]) == {"basic", "gold", "'=1+1"}  # no formula for a spreadsheet
    model = load(folder / "model.json")
    names = [variable.name for variable in model.variables]
    evidence = model.explain(new)
    for i in range(20):
        best, other = (0, 1) if told["predicted"][i] == "no" else (1, 0)
        gains = evidence[i, :, best] - evidence[i, :, other]
        order = [k for k in np.argsort(-gains, kind="stable")[:3] if gains[k] > 1e-9]
        said = [r for r in told.loc[i, ["reason 1", "reason 2", "reason 3"]] if isinstance(r, str)]
        assert len(said) == len(order)
        for text, k in zip(said, order, strict=True):
            assert names[k] in text
            assert f"odds of {told['predicted'][i]} x {np.exp(gains[k]):.3g}" in text
    raw = run("predict", folder / "model.json", folder / "new.csv", "-o", out, "--keep", "plan", "--raw")
    assert raw.exit_code == 0
    assert set(pd.read_csv(out)["plan"]) == {"basic", "gold", "=1+1"}


def test_columns_are_found_by_name(folder):
    new = customers(1)
    shuffled = new[["spent", "code", "left", "plan", "age"]].assign(more="x")
    shuffled.to_csv(folder / "shuffled.csv", index=False)
    out = folder / "shuffled-scored.csv"
    assert run("predict", folder / "model.json", folder / "shuffled.csv", "-o", out).exit_code == 0
    told = pd.read_csv(out, dtype=str)
    model = load(folder / "model.json")
    np.testing.assert_array_equal(numbers(told, model.classes), model.predict_proba(new))
    used = [v.name for v in model.variables if v.informs]
    new[used].to_csv(folder / "used.csv", index=False)
    assert run("predict", folder / "model.json", folder / "used.csv", "-o", out).exit_code == 0
    np.testing.assert_array_equal(
        numbers(pd.read_csv(out, dtype=str), model.classes), model.predict_proba(new)
    )
    new.drop(columns=used[0]).to_csv(folder / "lacks.csv", index=False)
    done = run("predict", folder / "model.json", folder / "lacks.csv", "-o", out)
    assert done.exit_code == 1
    assert f"X lacks column '{used[0]}'" in done.output


def test_text_that_looks_like_numbers_in_the_new_file_is_still_text(folder):
    new = customers(1)
    only_numbers = new[new["code"] != "x9"].reset_index(drop=True)
    only_numbers.to_csv(folder / "numbers.csv", index=False)
    out = folder / "numbers-scored.csv"
    done = run("predict", folder / "model.json", folder / "numbers.csv", "-o", out)
    assert done.exit_code == 0, done.output
    model = load(folder / "model.json")
    told = pd.read_csv(out, dtype=str)
    np.testing.assert_array_equal(numbers(told, model.classes), model.predict_proba(only_numbers))


def test_no_rows_give_no_rows(folder):
    customers(1).iloc[:0].to_csv(folder / "empty.csv", index=False)
    out = folder / "empty-scored.csv"
    done = run("predict", folder / "model.json", folder / "empty.csv", "-o", out, "--explain")
    assert done.exit_code == 0, done.output
    assert out.read_text().splitlines() == [
        "predicted,probability no,probability yes,reason 1,reason 2,reason 3"
    ]


@pytest.mark.parametrize(
    "estimator",
    [
        damier.DataGridClassifier(effort=1),
        damier.DataGridEnsembleClassifier(effort=1, n_grids=3),
        damier.LinfClassifier(n_estimators=3),
        damier.BallPartitionClassifier(),
    ],
    ids=lambda e: type(e).__name__,
)
def test_every_classifier_predicts_and_explains(estimator, folder):
    frame = customers()
    X = frame[["age", "spent"]]
    save(estimator.fit(X, frame["left"]), folder / "other.json")
    out = folder / "other.csv"
    done = run("predict", folder / "other.json", folder / "new.csv", "-o", out, "--explain")
    assert done.exit_code == 0, done.output
    told = pd.read_csv(out, dtype=str)
    model = load(folder / "other.json")
    np.testing.assert_array_equal(numbers(told, model.classes), model.predict_proba(customers(1)))
    assert told["reason 1"].str.len().min() > 10


def test_what_does_not_predict_classes(folder):
    frame = customers()
    X = frame[["age", "plan"]]
    encoder = damier.MODLEncoder(encode="evidence").fit(X, frame["left"])
    save(encoder, folder / "encoder.json")
    out = folder / "encoded.csv"
    assert run("predict", folder / "encoder.json", folder / "new.csv", "-o", out).exit_code == 0
    told = pd.read_csv(out, dtype=str)
    assert list(told) == ["age:no", "age:yes", "plan:no", "plan:yes"]
    np.testing.assert_array_equal(
        told.astype(object).map(float).to_numpy(float), encoder.transform(customers(1)[["age", "plan"]])
    )
    done = run("predict", folder / "encoder.json", folder / "new.csv", "-o", out, "--explain")
    assert done.exit_code == 1
    assert "--explain needs a model that predicts classes" in done.output
    save(encoder.partitions_["age"], folder / "age.json")
    assert run("predict", folder / "age.json", folder / "new.csv", "-o", out).exit_code == 0
    assert set(pd.read_csv(out)["age part"]) <= set(encoder.partitions_["age"].labels)
    save(damier.DataGridClustering().fit(X).model_, folder / "cells.json")
    assert run("predict", folder / "cells.json", folder / "new.csv", "-o", out).exit_code == 0
    assert list(pd.read_csv(out)) == ["cell"]
    save(damier.bound_posterior(frame["age"], frame["left"]), folder / "bound.json")
    done = run("predict", folder / "bound.json", folder / "new.csv", "-o", out)
    assert done.exit_code == 1
    assert "a BoundPosterior, which does not predict" in done.output


def test_what_is_refused(folder):
    model, new = folder / "model.json", folder / "new.csv"
    before = new.read_bytes()
    for words, told in [
        ((model, new, "-o", new), "is the input"),
        ((model, new, "-o", folder / "x.xlsx"), ".csv or .parquet"),
        ((folder / "none.json", new), "no file"),
        ((new, new, "-o", folder / "y.csv"), "not a saved model"),
        ((model, folder / "none.csv", "-o", folder / "y.csv"), "no file"),
        ((model, new, "-o", folder / "y.csv", "--keep", "idd"), "no column 'idd'"),
    ]:
        done = run("predict", *words)
        assert done.exit_code in (1, 2)
        assert told in done.output.replace("\n", " ")
    assert new.read_bytes() == before


def test_the_parts_as_one_table(folder):
    told = pd.read_csv(folder / "parts.csv")
    model = load(folder / "model.json")
    assert list(told) == ["variable", "part", "label", "rows", "rows no", "rows yes", "level"]
    for variable in model.variables:
        held = told[told["variable"] == variable.name]
        partition = variable.partition
        assert held["part"].tolist() == list(range(partition.n_parts))
        assert held["label"].tolist() == list(partition.labels)
        np.testing.assert_array_equal(held[["rows no", "rows yes"]], partition.counts)
        assert (held["rows"] == partition.counts.sum(axis=1)).all()
        assert held["level"].iloc[0] == pytest.approx(partition.level)


@pytest.mark.parametrize("text", ["=1", "+x", "-x", "@x", "\tx"])
def test_formulas_do_not_run(text, tmp_path):
    write_table(tmp_path / "t.csv", {text: [text, None, "-5"]})
    assert (tmp_path / "t.csv").read_text().splitlines()[1:] == [f"'{text}", '""', "-5"]
