"""What must hold whatever comes in: errors are sentences of ours, and so are warnings."""

from __future__ import annotations

import os
import re
import traceback

from sklearn.exceptions import DataConversionWarning

# What a terminal obeys: control characters, marks that turn the direction of writing, halves of characters.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

# How other libraries begin their messages: DuckDB, Python, PyArrow.
OTHERS_WORDS = re.compile(
    r"[A-Z][a-z]+ Error: |\w(?:Error|Exception)\b|\[Errno|\bcodec\b|\bduckdb\.|\bArrow\w"
)


class Broken(AssertionError):  # noqa: N818
    """A promise that does not hold."""


def refused(error):
    """Accept an error that was raised on purpose: by our code, or by scikit-learn's checks of tables."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = last.filename.replace(os.sep, "/")
    ours = "/damier/" in place or place.endswith("sklearn/utils/validation.py")
    on_purpose = (last.line or "").lstrip().startswith("raise")
    if not (ours and on_purpose) or not isinstance(error, ValueError | TypeError):
        raise Broken(f"{type(error).__name__} from {place.rsplit('/', 2)[-1]}: {error}") from error
    if words := OTHERS_WORDS.search(str(error)):
        raise Broken(f"in another library's words ({words[0]}): {error}") from error
    if len(str(error)) < 10:
        raise Broken(f"not a sentence: {error!r}") from error


def only_our_warnings(caught):
    for one in caught:
        ours = "/damier/" in one.filename.replace(os.sep, "/") and one.category is UserWarning
        if not ours and one.category is not DataConversionWarning and "feature names" not in str(one.message):
            raise Broken(f"warning {one.category.__name__}: {one.message}")
