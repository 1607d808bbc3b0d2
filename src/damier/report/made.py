"""How a page was made: when, by which command, in how many seconds."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

Made = dict[str, str]


def how_made(command: str, seconds: float, now: float | None = None) -> Made:
    """Say when, by what and how fast a page is made.

    Where ``SOURCE_DATE_EPOCH`` is set, it is the date, and the seconds are left out: the same data then
    make the same page, byte for byte.

    Parameters
    ----------
    command : str
        What was typed.
    seconds : float
        How long it took.
    now : float, optional
        Seconds since 1970; the clock by default.

    Examples
    --------
    >>> how_made("damier report a.csv -t b", 2.345, now=0.0)
    {'date': '1970-01-01 00:00 UTC', 'command': 'damier report a.csv -t b', 'seconds': '2.3'}
    """
    fixed = os.environ.get("SOURCE_DATE_EPOCH", "")
    if fixed.isdigit():
        now = float(fixed)
    date = datetime.fromtimestamp(time.time() if now is None else now, UTC)
    made = {"date": f"{date:%Y-%m-%d %H:%M} UTC", "command": command}
    return made if fixed.isdigit() else {**made, "seconds": f"{seconds:.1f}"}
