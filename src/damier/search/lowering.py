"""Compiled functions that are not turned into machine code by themselves, only inside their callers.

Numba optimises and codes every function it compiles, then optimises and codes it again inside each caller.
For a function that Python never calls the first time is lost: about a quarter of all compiling. Here such a
function is lowered to LLVM's language, unoptimised, and linked into its callers, where it is optimised with
them. The code that runs is the same.

These are options of `numba.njit`, for the decorators in `damier.search.kernels`.
"""

from __future__ import annotations

from typing import Any

import numba

# Versions of Numba with which every kernel was compiled this way.
_TRIED = ("0.68.",)


def _counted(references: bool) -> dict[str, Any]:
    """Say whether references to arrays are counted: not in functions that neither allocate nor return arrays.

    With the latter option a function that allocates after all does not compile. Said of every function, for
    Numba takes over what the caller has.
    """
    from numba.core.cpu import CPUTargetOptions

    # Nobody passes a kernel to C.
    options: dict[str, Any] = {"no_cfunc_wrapper": True}
    return {**options, "_nrt": references} if hasattr(CPUTargetOptions, "_nrt") else options


def _lowered_only() -> dict[str, Any]:
    """Options of functions that only compiled functions call.

    Numba offers pipelines of one's own for this, but the names used here are not all public: with a version
    of Numba that was not tried, or where a name is missing, the functions are compiled as any others.
    """
    unreachable: dict[str, Any] = {"no_cpython_wrapper": True}
    if not numba.__version__.startswith(_TRIED):
        return unreachable
    try:
        return {"pipeline_class": _pipeline(), **unreachable}
    except (ImportError, AttributeError):
        return unreachable


def _pipeline() -> type:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering, NopythonRewrites

    for name in (
        "_get_module_for_linking", "_finalize_dynamic_globals", "_ensure_finalized", "_optimize_functions",
    ):  # fmt: skip
        getattr(JITCodeLibrary, name)

    class LoweredLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code for its callers alone: linked with what it calls, neither optimised nor coded."""

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout

        def finalize(self) -> None:
            for library in dict.fromkeys(self._linking_libraries):
                self._reload_init.update(library._reload_init)
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
            self._finalize_dynamic_globals()
            self._finalized = True

    @register_pass(mutates_CFG=True, analysis_only=False)
    class LoweringOnly(NativeLowering):  # type: ignore[misc]
        _name = "damier_lowering_only"

        def run_pass(self, state: Any) -> bool:
            context = state.targetctx
            state.library = LoweredLibrary(context.codegen(), state.func_id.func_qualname)
            state.flags.no_compile = True
            super().run_pass(state)
            # Callers find the code by a built-in function of its own, which Python would call: this one is
            # bound to a new list, so that no other equals it, and always raises.
            state.cr = state.cr._replace(cfunc=[].index)
            context.insert_user_function(state.cr.cfunc, state.cr.fndesc, [state.library])
            state.reload_init.extend(state.library._reload_init)
            return True

    class LoweredOnly(CompilerBase):  # type: ignore[misc]
        def define_pipelines(self) -> list[Any]:
            pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
            pipeline.passes[:] = [
                (LoweringOnly if step is NativeLowering else step, why)
                for step, why in pipeline.passes
                # Whole arrays are not computed with where none can be allocated.
                if step is not NopythonRewrites or self.state.flags.nrt
            ]
            pipeline.finalize()
            return [pipeline]

    return LoweredOnly


BARE = _counted(False)
ALLOCATING = _counted(True)
LOWERED = _lowered_only()
