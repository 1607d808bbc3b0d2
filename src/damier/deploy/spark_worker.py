"""What Spark's workers run to score: shipped by value, together with the sources of what it imports."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any


class Shipped:
    """Imports modules from text that was sent along, and never from a file.

    Parameters
    ----------
    digest : str
        Stands for the modules: those of another digest are forgotten.
    sources : mapping of str to bytes
        Compressed source of each module; the name of a package ends in ``.__init__``.
    """

    def __init__(self, digest: str, sources: Mapping[str, bytes]) -> None:
        self.digest, self.sources = digest, sources

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        """Find a module."""
        from importlib.machinery import ModuleSpec

        package = f"{name}.__init__" in self.sources
        if not package and name not in self.sources:
            return None
        return ModuleSpec(name, self, is_package=package)  # type: ignore[arg-type]

    def create_module(self, spec: Any) -> None:
        """Leave it to Python to make the module."""

    def exec_module(self, module: Any) -> None:
        """Run the source of a module."""
        spec = module.__spec__
        key = f"{spec.name}.__init__" if spec.submodule_search_locations is not None else spec.name
        exec(compile(zlib.decompress(self.sources[key]), f"<{spec.name}>", "exec"), module.__dict__)

    def install(self) -> None:
        """Have Python look here first; forget modules that were sent before and differ."""
        import sys

        for finder in list(sys.meta_path):
            if getattr(finder, "digest", None) == self.digest:
                return
            if hasattr(finder, "digest"):
                sys.meta_path.remove(finder)
        for name in list(sys.modules):
            if f"{name}.__init__" in self.sources or name in self.sources:
                del sys.modules[name]
        sys.meta_path.insert(0, self)


def scoring(
    shipped: Shipped,
    text: str,
    chosen: Sequence[str],
    used: Sequence[str],
    copied: Sequence[str],
    answered: Sequence[tuple[str, str]],
    explain: bool,
) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the function that scores batches.

    Parameters
    ----------
    shipped : Shipped
    text : str
        The model as JSON.
    chosen : sequence of str
        The columns of a batch.
    used, copied : sequences of str
        Columns of the model, and those to copy.
    answered : sequence of (str, str)
        Names of the answers, and pyarrow's names of their types.
    explain : bool
        Whether to give reasons.
    """

    def score(batches: Iterator[Any]) -> Iterator[Any]:
        shipped.install()
        import pyarrow as pa

        from damier.deploy.json import loads
        from damier.deploy.scoring import answers
        from damier.intake import Table, read_table

        model = loads(text)
        names = [*copied, *(name for name, _ in answered)]
        for held in batches:
            batch = held.rename_columns(list(chosen))
            table = read_table(batch.select(used)) if used else Table((), batch.num_rows)
            columns = [batch.column(name) for name in copied]
            found = answers(model, table, explain=explain)
            for (_, values), (_, kind) in zip(found, answered, strict=True):
                columns.append(pa.array(values, pa.type_for_alias(kind)))
            yield pa.RecordBatch.from_arrays(columns, names=names)

    return score
