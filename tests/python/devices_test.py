"""Tensors on a device (docs/devices.md#inputs-and-outputs-on-a-device), that of the simulated accelerator.

    python tests/python/devices_test.py

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np

import built_package

if built_package.BUILT:
    import collage

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


class Passed:
    """Another library's tensor: all that is known of it is DLPack."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__()

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


class Foreign(Passed):
    def __dlpack_device__(self):
        return (4, 0)  # OpenCL's


def compiled(folder, text, **options):
    collage.load_plugin(os.path.join(built_package.BUILD, "tests", "libcollage_simulated.so"))
    return collage.parse(text).compile(targets="simulated", effort="fast", database=os.path.join(folder, "costs.db"), **options)


def check_run(folder):
    """What is on the device is taken from there and left there; DLPack passes it on, and other memory is refused."""
    program = compiled(folder, "def @main(%x: Tensor[(3, 4), float32]) { tanh(exp(%x)) }")
    x = collage.copy_to("simulated:0", X)
    assert (x.shape, x.dtype, x.device) == ((3, 4), "float32", "simulated:0") and x.__dlpack_device__() == (12, 0), x
    for given in (x, Passed(x), X):
        y = collage.allocate_on("simulated:0", (3, 4))
        name = program.outputs[0].name
        assert program.run({"x": given}, {name: y})[name] is y
        np.testing.assert_allclose(y.numpy(), np.tanh(np.exp(X)), rtol=1e-5)
        np.testing.assert_allclose(program(given), np.tanh(np.exp(X)), rtol=1e-5)
    np.testing.assert_array_equal(collage.copy_to("simulated:1", x).numpy(), X)
    try:
        program(Foreign(x))
    except TypeError as wrong:
        assert "input 'x': expected array in CPU memory" in str(wrong), wrong
    else:
        raise AssertionError("memory of another library was taken")


def check_sizes(folder):
    """Programs of several shapes refuse such tensors."""
    path = os.path.join(folder, "sizes.relay")
    with open(path, "w") as file:
        file.write('#[version = "0.0.5"]\ndef @main(%x: Tensor[(n, 4), float32]) { exp(%x) }\n')
    program = collage.load_dynamic(path, targets="native", effort="fast", database=os.path.join(folder, "costs.db"))
    np.testing.assert_allclose(program(X), np.exp(X), rtol=1e-5)
    try:
        program(collage.copy_to("simulated:0", X))
    except collage.Error as wrong:
        assert str(wrong) == "input 0 is on simulated:0: programs of several shapes take tensors of the host", wrong
    else:
        raise AssertionError("a device's tensor was padded")


if __name__ == "__main__":
    sys.exit(built_package.run([check_run, check_sizes], sys.argv[1:]))
