"""LLVM's code generators for this machine, and the passes for code that was written with care.

In: LLVM modules. Out: machines that make object code of them. Nothing here, nor in what writes
modules, needs NumPy: a process that only compiles does without (`compile_worker`).
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import llvmlite.binding as llvm


def _machine(options: dict[str, object], features: str) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, reloc="pic", **options
    )


def _features() -> str:
    # A feature set that LLVM cannot read (unknown CPU) is empty; its baseline is right then.
    features = llvm.get_host_cpu_features()
    return features.flatten() if features else ""


@functools.cache
def kernel_machine() -> llvm.TargetMachine:
    """The code generator for kernels, with 512-bit vectors where the CPU has them."""
    return _machine({"opt": 3, "codemodel": "small"}, tuned(_features()))


#: Features that only x86 processors have whose divisions of 64 bits depend on how long the quotient
#: is, not on the registers: AMD's since Zen, Intel's since Ice Lake.
_DIVIDES_QUICKLY = ("+clzero", "+gfni")


def tuned(features: str) -> str:
    """The features of a processor, with those that say how it is used best.

    LLVM asks before a division of 64 bits whether both numbers have 32 bits. That pays on old
    processors; where signs vary it is a branch that nobody can guess, and takes twice the time of
    the division.
    """
    if "+avx512f" in features:
        features += ",-prefer-256-bit"
    if any(feature in features.split(",") for feature in _DIVIDES_QUICKLY):
        features += ",-idivq-to-divl"
    return features


@functools.cache
def keeps_vectors() -> str:
    """The attribute of a function that saves all registers itself, called so from kernels.

    LLVM clears the upper halves of all vectors before such a function returns, too, after it has
    restored them: `vzeroupper`, which is left out by a feature of that name.
    """
    features = tuned(_features())
    if "+avx" not in features.split(","):
        return ""
    return f'"target-features"="{features},-vzeroupper"'


@functools.cache
def runtime_machine() -> llvm.TargetMachine:
    """The code generator for the run time: LLVM's second level takes longer and makes no faster
    calls."""
    return _machine({"opt": 1, "codemodel": "default"}, _features())


@contextlib.contextmanager
def option(name: str, *, on: bool = True) -> Iterator[None]:
    """Sets one of LLVM's options for a while: it is the process's, and so everyone's who compiles
    with LLVM. Afterwards it is the opposite, which it has to be by default."""
    llvm.set_option("pyrelay", f"{name}={str(on).lower()}")
    try:
        yield
    finally:
        llvm.set_option("pyrelay", f"{name}={str(not on).lower()}")


def tidy(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Optimise an LLVM module that was written with care: registers for variables, plain folding.

    LLVM's own pipelines take ten times as long and find nothing more in such code.
    """
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
