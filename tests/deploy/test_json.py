"""Files come back as the models they were, and bad ones are refused."""

import json
import subprocess
import sys

import numpy as np
import pytest

from damier import MODLEncoder, NaiveBayesClassifier
from damier.deploy import load, save
from damier.deploy.json import FORMAT, dumps, loads
from damier.models import Encoding

ROWS = 200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, ROWS)
    X = {
        "number": np.where(rng.random(ROWS) < 0.1, np.nan, rng.normal(y)),
        "a\"b<script>alert('é')</script>\u2028": rng.choice(["x", "ü", ""], ROWS).tolist(),
        "flag": (rng.random(ROWS) < y / 2).tolist(),
    }
    return X, y


@pytest.mark.parametrize("encode", ["ordinal", "onehot", "evidence"])
def test_a_loaded_file_transforms_as_the_estimator(data, tmp_path, encode):
    X, y = data
    encoder = MODLEncoder(encode=encode).fit(X, y)
    path = tmp_path / "model.json"
    save(encoder, path)
    save(encoder.model_, path)
    model = load(path)
    assert isinstance(model, Encoding)
    assert model == encoder.model_
    np.testing.assert_array_equal(model.transform(X), encoder.transform(X))
    assert model.feature_names_out() == encoder.get_feature_names_out().tolist()
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_scoring_a_file_needs_neither_numba_nor_scikit_learn(data, tmp_path):
    X, y = data
    save(MODLEncoder().fit(X, y), tmp_path / "model.json")
    missing = {name: [None] for name in X}
    program = (
        "import sys, damier.deploy\n"
        f"model = damier.deploy.load({str(tmp_path / 'model.json')!r})\n"
        f"model.transform({missing!r})\n"
        "print([m for m in ('sklearn', 'numba', 'pandas', 'polars', 'pyarrow') if m in sys.modules])\n"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1, 2]", "does not say"),
        ("[" * 100_000, "not JSON"),
        ('{"damier": "x"}', "does not say"),
        (json.dumps({"damier": FORMAT + 1, "model": "encoding"}), "later version"),
        ('{"damier": 1, "model": "os.system"}', "unknown kind"),
        ('{"damier": 1, "model": ["encoding"]}', "unknown kind"),
        ('{"damier": 1, "model": "encoding"}', "'partitions' is missing"),
        ('{"damier": 1, "model": "encoding", "partitions": 3, "encode": "ordinal"}', "not a saved model"),
        ('{"damier": 1, "model": "encoding", "partitions": [], "encode": "x"}', "encode: unknown value 'x'"),
        ('{"damier": 1, "model": "encoding", "partitions": [3], "encode": "ordinal"}', "an object"),
    ],
)
def test_files_that_are_no_models(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load(path)


def test_no_field_can_be_left_out(data):
    X, y = data
    plain = json.loads(dumps(MODLEncoder().fit(X, y)))
    for partition in plain["partitions"]:
        for field in partition.keys() - {"target"}:  # files of earlier versions do not have it
            spoiled = {k: v for k, v in partition.items() if k != field}
            with pytest.raises(ValueError, match="saved model"):
                loads(json.dumps({**plain, "partitions": [spoiled]}))


def test_files_of_earlier_versions_lack_later_fields(data):
    X, y = data
    classifier = NaiveBayesClassifier(evidence="best", averaging="compression").fit(X, y)
    plain = json.loads(dumps(classifier))
    for variable in plain["variables"]:
        del variable["class_weights"], variable["averaged"], variable["adjustment"]
    assert loads(json.dumps(plain)).predict_proba(X).tobytes() == classifier.predict_proba(X).tobytes()


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(TypeError, match="MODLEncoder cannot be saved: give a fitted"):
        save(MODLEncoder(), tmp_path / "model.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not text"):
        load(tmp_path / "b.json")
    assert not (tmp_path / "model.json").exists()


def test_a_loaded_naive_bayes_scores_frames_to_the_last_bit(data):
    X, y = data
    classifier = NaiveBayesClassifier().fit(X, y)
    model = loads(dumps(classifier))
    assert model.predict_proba(X).tobytes() == classifier.predict_proba(X).tobytes()
    assert (model.predict(X) == classifier.predict(X)).all()
    shuffled = {name: X[name] for name in reversed(X)} | {"more": [{}] * ROWS}
    assert model.predict_proba(shuffled).tobytes() == classifier.predict_proba(X).tobytes()
    with pytest.raises(ValueError, match="X lacks column 'number'"):
        model.predict_proba({name: X[name] for name in X if name != "number"})


@pytest.mark.parametrize("semi_supervised", ["criterion", "bounds"])
@pytest.mark.parametrize("encode", ["ordinal", "onehot", "evidence"])
def test_a_model_of_rows_without_any_label(data, encode, semi_supervised):
    X, _ = data
    encoder = MODLEncoder(encode=encode, semi_supervised=semi_supervised).fit(X, np.full(ROWS, -1))
    np.testing.assert_array_equal(loads(dumps(encoder)).transform(X), encoder.transform(X))
