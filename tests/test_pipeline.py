"""The order of stages, what is reported about them, and how few kernels programs become."""

from __future__ import annotations

import numpy as np
import pytest

import pyrelay
from benchmarks.programs import plain
from pyrelay import config, pipeline
from pyrelay.devices.compiler import native
from pyrelay.devices.compiler.compile_pool import is_part
from pyrelay.ir.nodes import Vjp
from pyrelay.ir.verify import VerifyError
from pyrelay.ir.walk import nested_lets
from pyrelay.lower.text.show import show_plan
from pyrelay.opt.fuse import fuse


def specialised(function, *args):
    """The typed program for these arguments."""
    return pyrelay.jit(function)._specialised(args, {})


def slope_of_cube(x):
    return np.sum(pyrelay.grad(lambda x: np.sum(x**3))(x))


def requests(module):
    return [
        let for f in module.functions.values() for let in nested_lets(f.body)
        if isinstance(let.rhs, Vjp)
    ]  # fmt: skip


def test_stages_follow_each_other_and_their_names_are_those_of_the_settings():
    names = [stage.name for stage in pipeline.STAGES]
    assert names == ["grad", "optimise", "fuse"]
    assert set(names) < set(config.STAGES)
    for before, after in zip(pipeline.STAGES, pipeline.STAGES[1:], strict=False):
        assert before.after == before.name
        assert after.between in (before.after, after.after)  # `fuse` makes kernel calls twice


def test_derivatives_are_requested_before_grad_and_gone_after_it():
    module = specialised(slope_of_cube, np.ones(3)).module
    assert len(requests(module)) == 1
    assert pipeline.lowered(module, "infer") is module
    assert not requests(pipeline.lowered(module, "grad"))
    with pytest.raises(ValueError, match="no stage of a module; use infer, grad"):
        pipeline.lowered(module, "plan")


def test_a_pass_that_breaks_the_program_is_found_and_named():
    module = specialised(slope_of_cube, np.ones(3)).module

    def lose_everything(module):
        return type(module)({}, module.entry)

    def no_pass(module):
        return module

    broken = pipeline.Stage("optimise", (no_pass, lose_everything), "infer", "optimise")
    with config.override(verify=True), pytest.raises(VerifyError) as caught:
        pipeline.run_passes(module, broken)
    assert caught.value.__notes__ == ["in pass 'lose_everything' of stage 'optimise'"]

    def trips(module):
        return module.functions[module.entry] and module

    broken = pipeline.Stage("optimise", (lose_everything, trips), "infer", "optimise")
    with config.override(verify=True), pytest.raises(VerifyError) as caught:
        pipeline.run_passes(module, broken)
    assert caught.value.__notes__ == ["in pass 'lose_everything' of stage 'optimise'"]
    with config.override(verify=False), pytest.raises(KeyError) as caught:
        pipeline.run_passes(module, broken)
    assert caught.value.__notes__ == ["in pass 'trips' of stage 'optimise'"]
    unfinished = pipeline.Stage("grad", (no_pass,), "infer", "grad")
    with config.override(verify=True), pytest.raises(VerifyError, match="after grad"):
        pipeline.run_passes(module, unfinished)


def test_a_pass_runs_again_only_after_another_one_changed_the_program():
    ran = []

    def idle(module):
        ran.append("idle")
        return module

    def busy(module):
        ran.append("busy")
        return type(module)(dict(module.functions), module.entry)

    module = specialised(slope_of_cube, np.ones(3)).module
    stage = pipeline.Stage("optimise", (idle, idle, busy, idle, idle, busy), "infer", "infer")
    pipeline.run_passes(module, stage)
    assert ran == ["idle", "busy", "idle", "busy"]


def test_a_pass_gives_back_the_program_that_it_leaves_as_it_is():
    module = specialised(lambda x: x, 1.0).module
    passes = {each for stage in pipeline.STAGES for each in stage.passes} - {fuse}  # the last
    assert {each.__name__ for each in passes if each(module) is not module} == set()


def test_stages_are_printed_on_request(capsys, tmp_path):
    x = np.ones(3)
    with config.override(dump="infer,fuse,emit"):
        pyrelay.jit(lambda x: np.tanh(x))(x)
    printed = capsys.readouterr().err
    assert [line for line in printed.splitlines() if line.startswith("-- ")] == [
        "-- infer", "-- fuse", "-- emit",
    ]  # fmt: skip
    with config.override(dump="all", dump_dir=tmp_path / "texts"):
        pyrelay.jit(lambda x: np.tanh(x))(x)
    assert capsys.readouterr().err == ""
    names = sorted(path.name for path in (tmp_path / "texts").iterdir())
    assert names == [
        "000-parse.txt", "001-infer.txt", "002-grad.txt", "003-optimise.txt", "004-fuse.txt",
        "005-kernelise.txt", "006-plan.txt", "007-emit.txt",
    ]  # fmt: skip


def test_times_are_printed_on_request(capsys):
    with config.override(time=True):
        pyrelay.jit(lambda x: np.tanh(x))(np.ones(3))
    printed = capsys.readouterr().err.splitlines()
    assert all(line.startswith("pyrelay: ") and line.endswith(" ms") for line in printed)
    assert {line.split("/")[0] for line in printed} >= {"pyrelay: grad", "pyrelay: load"}


# -- floors of speed, as counts --------------------------------------------------------------------


def f32(*shape):
    return np.full(shape, 0.1, np.float32)


def build(function, *args):
    return pipeline.compiled(specialised(function, *args))


def lstm(hidden=8, steps=5):
    zeros = np.zeros(hidden, np.float32)
    weights = f32(hidden, 4 * hidden)
    return f32(steps, hidden), zeros, zeros.copy(), weights, weights.copy(), f32(4 * hidden)


@pytest.mark.parametrize(
    ("function", "args", "most"),
    [
        (plain.elementwise, (f32(9), f32(9), f32(9)), 1),
        (plain.softmax, (f32(4, 5),), 1),
        (plain.layer_norm, (f32(4, 5),), 1),
        (plain.lstm, lstm(), 4),  # one of them lays weights, where they are large
    ],
    ids=["elementwise", "softmax", "layer norm", "lstm"],
)
def test_programs_become_few_launches(function, args, most):
    assert build(function, *args).launches <= most


def test_another_batch_size_compiles_nothing():
    compiled = pyrelay.jit(plain.softmax)
    compiled(f32(4, 5))
    before = native.counts.compiled, native.counts.loaded
    for shape in ((8, 5), (16, 7), (3, 2)):
        np.testing.assert_allclose(compiled(f32(*shape)), 1 / shape[1], rtol=1e-6)
    assert (native.counts.compiled, native.counts.loaded) == before
    assert compiled.cache_info().compilations == 1


def test_a_program_of_the_same_kernels_compiles_no_kernel():
    pyrelay.jit(lambda x: np.tanh(x) * 2.0 + 1.0)(f32(3))
    before = native.counts.compiled
    pyrelay.jit(lambda other: np.tanh(other) * 2.0 + 1.0)(f32(4))
    assert native.counts.compiled == before


def test_kernels_are_begun_while_others_are_planned(monkeypatch):
    """Those of a program that will run; not those that are shown."""
    begun = []
    monkeypatch.setattr(native, "begin", begun.append)
    compiled = pyrelay.jit(lambda x: np.cumsum(np.tanh(x) @ x))
    shown = compiled.code(f32(3, 3))
    assert begun == []
    made = build(compiled.py, f32(3, 3))
    kernels = [text for text in begun if not is_part(text)]
    assert len(set(kernels)) == made.kernels > 1  # the product's twice: it was foreseen
    assert all(text.splitlines()[-2] in str(shown) for text in kernels)
    parts = [part for text in kernels for part in native.parts_of(text).values()]
    assert set(begun) - set(kernels) <= set(parts)  # those that the call will reach


def test_stores_in_a_loop_copy_nothing():
    spec = specialised(plain.stores, np.ones(4), 0.5)
    text = show_plan(pipeline.planned(spec, pipeline.lowered(spec.module, "fuse")))
    assert "copy" not in text
