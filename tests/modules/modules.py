"""Modules of tensor programs that users write, none of which is an operator: programs/NAME.relay, and the same computation in operators in
programs/NAME.operators.relay. Sizes stand there as $name.
"""

import os
import string

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")

# Of a small transformer, and of an image.
SIZES = {
    "mlp": {"rows": 128, "width": 256, "hidden": 1024},
    "mlp narrow": {"rows": 1024, "width": 64, "hidden": 128},
    "stencil": {"rows": 1024, "width": 1024},
    "attention": {"heads": 8, "rows": 128, "depth": 64},
    "norm_rotary": {"rows": 128, "heads": 8, "half": 32},
}
# For tests: with and without ends that vectors and tiles do not fill.
SMALL = {
    "mlp": [{"rows": 16, "width": 32, "hidden": 48}, {"rows": 13, "width": 21, "hidden": 37}],
    "stencil": [{"rows": 32, "width": 64}, {"rows": 19, "width": 45}],
    "attention": [{"heads": 2, "rows": 32, "depth": 16}, {"heads": 3, "rows": 11, "depth": 9}],
    "norm_rotary": [{"rows": 16, "heads": 4, "half": 8}, {"rows": 7, "heads": 3, "half": 5}],
}


def parts_config(folder):
    """A configuration by which native computes every operator, and every tensor program, by itself."""
    path = os.path.join(folder, "parts.json")
    with open(path, "w", encoding="utf-8") as file:
        file.write("""{"targets": [{"name": "native", "rule": "union(is_op('tensor_program'), is_op_up_to('anchor'))"}]}""")
    return path


def text(name, sizes, operators=False):
    """The Relay text of the module that the name begins with, for these sizes."""
    values = dict(sizes)
    if "half" in values:
        values["width"] = 2 * values["heads"] * values["half"]
    for size, value in sizes.items():
        values.update({f"{size}{more}": value + more for more in (1, 2)})
    with open(os.path.join(FOLDER, name.split()[0] + (".operators" if operators else "") + ".relay"), encoding="utf-8") as file:
        return string.Template(file.read()).substitute(values)
