"""Kernels that passes compile and attach to a module (docs/modules.md#external-modules).

    python tests/python/external_modules_test.py

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np

import built_package

if built_package.BUILT:
    import collage
    from collage import passes

    from modules_test import INPUT, compile, expect_right, expected, given


def check_external_modules(folder):
    """What toolchains claimed is compiled by passes, attached, printed, read back, compiled with, and saved."""
    claims = {"onednn": ["onednn:tanh", "onednn:sigmoid", "onednn:multiply"], "native": "native:tanh"}
    stages = [stage for name, exclude in claims.items() for stage in (passes.partition_for(name, exclude=exclude), passes.codegen(name, threads=1))]
    model = collage.Pipeline(stages)(given())
    attached = model.external_mods
    assert {module.target for module in attached} == {"onednn", "native"}, attached
    text, script = model.text(values=False), model.script(values=False)
    for module in attached:
        assert module.code.dtype == np.uint8 and bytes(module.code[:2]) == b"PK", module
        header = f'"{module.target}", "{module.variant}"'
        assert f'external_mods["{module.symbol}"] = ({header}, meta[relay.Constant]' in text, text
        assert f'"{module.symbol}": ({header}, R.const(shape=({module.code.size},), dtype="uint8"))' in script, script
    assert "Primitive" not in text and len(text) < 4000, text
    assert repr(attached[0]) == f"ExternalModule('{attached[0].symbol}', '{attached[0].target}', '{attached[0].variant}')"
    model.save(os.path.join(folder, "attached.relay"))
    read = [collage.parse(text, model.weights()), collage.parse(script, model.weights()), collage.load(os.path.join(folder, "attached.relay"))]
    for each in (model, *read):
        assert [module.symbol for module in each.external_mods] == [module.symbol for module in attached]
        expect_right(folder, each, "reference")
    compile(folder, read[2], "native").save(os.path.join(folder, "attached.collage"))
    np.testing.assert_allclose(collage.load(os.path.join(folder, "attached.collage"))(INPUT), expected(), rtol=1e-4, atol=1e-5)
    foreign = collage.parse(text, [np.zeros(w.shape, w.dtype) if w.dtype == np.uint8 else w for w in model.weights()])
    try:
        compile(folder, foreign, "native")
    except collage.Error as wrong:
        assert str(wrong).startswith("external module ") and "this is no artifact" in str(wrong), wrong
    else:
        raise AssertionError("zeros were linked")


if __name__ == "__main__":
    sys.exit(built_package.run([check_external_modules], sys.argv[1:]))
