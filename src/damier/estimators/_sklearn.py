"""What is used of scikit-learn beyond its public names, in one place: whatever it renames is mended here."""

from sklearn.base import _fit_context as fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in

__all__ = ["UNUSED", "Interval", "StrOptions", "check_feature_names_in", "fit_context"]
