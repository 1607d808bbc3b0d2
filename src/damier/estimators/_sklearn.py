"""What is used of scikit-learn beyond its public names, in one place: whatever it renames is mended here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _check_feature_names_in as check_feature_names_in

__all__ = ["UNUSED", "Interval", "StrOptions", "check_feature_names_in", "fit_context"]

Method = TypeVar("Method", bound=Callable[..., Any])


def fit_context(*, prefer_skip_nested_validation: bool) -> Callable[[Method], Method]:
    """Check the parameters before ``fit``, whose type stays what it is."""
    decorate: Callable[[Method], Method] = _fit_context(
        prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorate
