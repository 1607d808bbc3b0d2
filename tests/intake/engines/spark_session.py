"""Spark for tests: a session of this process, and a cluster of a master and two workers on loopback.

Python on the workers refuses to import Damier, Numba and all else that is not promised to be needed there,
so that what is shipped by value really is.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

REFUSED = ("damier", "numba", "scipy", "sklearn", "narwhals", "duckdb", "polars", "pandas", "rich", "typer")
_REFUSE = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {REFUSED!r}:
            raise ModuleNotFoundError(f"{{name}} is not installed on the workers", name=name)

sys.meta_path.insert(0, Refuse())
"""


def need_spark() -> None:
    """Skip what runs on Spark where it is not installed, and say what is missing."""
    if importlib.util.find_spec("pyspark") is None:
        pytest.skip("Spark needs the Python package pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java: apt-get install openjdk-17-jre-headless")


@functools.cache
def worker_python() -> str:
    """Write the program that workers run: Python, without what they are not to need."""
    folder = Path(tempfile.mkdtemp(prefix="damier-"))
    (folder / "sitecustomize.py").write_text(_REFUSE)
    program = folder / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{folder}:$PYTHONPATH" exec "{sys.executable}" "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    folder.chmod(0o755)
    return str(program)


def start(master: str = "local[2]"):
    """Start a session, or return the one there is."""
    need_spark()
    os.environ["PYSPARK_PYTHON"] = worker_python()
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    folder = tempfile.mkdtemp(prefix="damier-")
    heard = signal.getsignal(signal.SIGINT)
    session = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "3")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={folder}")
        .config("spark.executor.memory", "512m")
        .getOrCreate()
    )
    signal.signal(signal.SIGINT, heard)  # Spark takes Ctrl-C for itself, after it has stopped too
    session.sparkContext.setLogLevel("OFF")
    return session


def _port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@contextmanager
def cluster(n_workers: int = 2):
    """Run a standalone cluster; yields the address of its master."""
    need_spark()
    import pyspark

    folder = Path(tempfile.mkdtemp(prefix="damier-"))
    home = Path(pyspark.__file__).parent
    program, port = str(home / "bin" / "spark-class"), _port()
    address = f"spark://127.0.0.1:{port}"
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": worker_python(),
        "SPARK_NO_DAEMONIZE": "1",
    }
    deploy = "org.apache.spark.deploy"
    words = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for k in range(n_workers):
        (folder / f"w{k}").mkdir()
        words.append([f"{deploy}.worker.Worker", "--cores", "1", "--memory", "1g", "--host", "127.0.0.1"])
        words[-1] += ["--webui-port", "0", "--work-dir", str(folder / f"w{k}"), address]
    processes, logs = [], []
    try:
        for k, command in enumerate(words):
            logs.append(folder / f"{k}.log")
            with logs[-1].open("w") as log:
                processes.append(
                    subprocess.Popen([program, *command], stdout=log, stderr=log, env=environment)
                )
            _wait(logs[0], "I have been elected leader" if k == 0 else None)
        _wait(logs[0], "Registering worker", n_workers)
        yield address
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(timeout=60)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(log: Path, said: str | None, times: int = 1) -> None:
    deadline = time.monotonic() + 120
    while said is not None and len(re.findall(said, log.read_text())) < times:
        assert time.monotonic() < deadline, log.read_text()[-2000:]
        time.sleep(0.1)
