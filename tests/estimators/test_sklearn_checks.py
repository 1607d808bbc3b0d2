"""scikit-learn's own checks of its habits."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from damier import MODLDiscretizer, MODLEncoder, MODLGrouper


@parametrize_with_checks(
    [
        MODLDiscretizer(),
        MODLDiscretizer(encode="onehot", short_bounds=True),
        MODLGrouper(),
        MODLEncoder(encode="evidence", n_jobs=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
