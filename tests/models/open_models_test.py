"""Models with open dimensions against ONNX Runtime, at reduced size: for sizes given to the command, and one program for all of them.

    python tests/models/open_models_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). The detectors, whose boxes are counted at run time, are
those of detectors/. Prints "N passed, 0 failed" or what went wrong.
"""

import lzma
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
BUILD = os.path.dirname(os.environ.get("COLLAGE_BIN") or os.path.join(ROOT, "build", "release", "collage"))
sys.path[:0] = [os.path.join(BUILD, "python")] + [os.path.join(ROOT, *room) for room in (
    ["tests"], ["tests", "cli"], ["models"], ["bench", "peers"])]

import numpy as np
import onnx
import onnxruntime

import checks
import command
import generate
import tensor_files
from random_inputs import random_image, random_inputs

if os.path.exists(os.path.join(BUILD, "python", "collage", "_core.pyi")):
    import collage
else:
    collage = None

SIZES = {
    "bert_dynamic": [{"batch": 1, "sequence": 7}, {"batch": 3, "sequence": 16}, {"batch": 2, "sequence": 1}],
    "gpt2_cache": [{"batch": 1, "sequence": 6, "past": 0}, {"batch": 1, "sequence": 1, "past": 6}, {"batch": 3, "sequence": 4, "past": 9}],
    "whisper_encoder": [{"batch": 1}, {"batch": 3}],
    "whisper_decoder": [{"batch": 1, "sequence": 4, "encoder_sequence": 20}, {"batch": 2, "sequence": 7, "encoder_sequence": 20}],
    "whisper_decoder_with_past": [{"batch": 1, "sequence": 1, "past": 4, "encoder_sequence": 20},
                                  {"batch": 2, "sequence": 3, "past": 7, "encoder_sequence": 20}],
    "lstm_lengths": [{"batch": 1, "length": 5}, {"batch": 4, "length": 9}],
    "diffusion_unet": [{"batch": 1, "height": 16, "width": 16, "words": 5}, {"batch": 2, "height": 8, "width": 24, "words": 3}],
    "llama": [{"batch_size": 2, "sequence_length": 5, "past_sequence_length": 0},
              {"batch_size": 1, "sequence_length": 3, "past_sequence_length": 4},
              {"batch_size": 3, "sequence_length": 1, "past_sequence_length": 8}],
}
DETECTORS = ("ssdlite320_mobilenet_v3_large", "fasterrcnn_mobilenet_v3_large_320_fpn")


def whole(sizes):
    """With the sizes that follow from others."""
    sizes = dict(sizes)
    if "past" in sizes:
        sizes["past + sequence"] = sizes["past"] + sizes["sequence"]
    if "past_sequence_length" in sizes:
        sizes["total_sequence_length"] = sizes["past_sequence_length"] + sizes["sequence_length"]
    return sizes


def inputs_of(model, sizes, seed):
    """Masks of a decoder with a cache hide what pads the end of a sequence's cache; several new tokens are all there."""
    feed = random_inputs(model, seed, dims=sizes)
    if "total_sequence_length" in sizes and sizes["sequence_length"] > 1:
        feed["attention_mask"][:] = 1
    return feed


def expected_of(path, feed):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, feed)))


def given_sizes(name):
    """One command for each set of sizes, every output within tolerance of ONNX Runtime's."""
    def check(folder):
        path = generate.generate(name, folder, small=True)[0]
        model = onnx.load(path)
        used = {d.dim_param for value in model.graph.input for d in value.type.tensor_type.shape.dim}
        for seed, sizes in enumerate(map(whole, SIZES[name])):
            here = os.path.join(folder, str(seed))
            feed = inputs_of(model, sizes, seed)
            saved = tensor_files.save(os.path.join(here, "inputs"), list(feed.items()))
            tensor_files.save(os.path.join(here, "outputs"), list(expected_of(path, feed).items()))
            flags = [f for key, file in zip(feed, saved) for f in ("--inputs", f"{key}={file}")]
            flags += [f for key in sizes if key in used for f in ("--dim", f"{key}={sizes[key]}")]
            result = command.run(["verify", path, *flags, "--expect", os.path.join(here, "outputs"), "--targets", "onednn",
                                  ], folder, cache=folder)
            assert result.returncode == 0, f"{sizes}: exit status {result.returncode}: {result.stderr}{result.stdout}"

    return f"given sizes: {name}", check


def agree(actual, expected, where):
    assert actual.shape == expected.shape and actual.dtype == expected.dtype, (where, actual.shape, expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4 * max(1e-30, float(np.abs(expected).max(initial=0))),
                               err_msg=str(where))


def one_program(name):
    """One program runs all sets of sizes, one after the other and again."""
    def check(folder):
        path = generate.generate(name, folder, small=True)[0]
        model = onnx.load(path)
        program = collage.load_dynamic(path, targets="onednn", database=os.path.join(folder, "costs.db"))
        for seed, sizes in enumerate(map(whole, SIZES[name] * 2)):
            feed = inputs_of(model, sizes, seed)
            outputs = program.run(feed)
            for key, expected in expected_of(path, feed).items():
                agree(outputs[key], expected, (sizes, key))

    return f"one program: {name}", check


def one_module(name):
    """One module over symbols: its instances, a program of it, the same from its text, and from an artifact."""
    def check(folder):
        path = generate.generate(name, folder, small=True)[0]
        model, costs = onnx.load(path), os.path.join(folder, "costs.db")
        dims = {dim: "past_sequence_length + sequence_length" for dim in ("total_sequence_length",) if name == "llama"}
        family = collage.load_symbolic(path, dims=dims)
        assert sorted(family.symbols) == sorted(SIZES[name][0]), family
        assert [info.name for info in family.outputs] == [value.name for value in model.graph.output]
        text = os.path.join(folder, "family.relay")
        family.save(text)
        program, again = family.compile(targets="onednn", database=costs), collage.load_dynamic(text, targets="onednn", database=costs)
        runs = []
        for seed, sizes in enumerate(SIZES[name]):
            feed = inputs_of(model, whole(sizes), seed)
            expected, outputs, from_text = expected_of(path, feed), program.run(feed), again.run(feed)
            instance = family.at(**sizes).compile(targets="onednn", database=costs).run(feed)
            for (key, wanted), same in zip(expected.items(), from_text.values()):
                agree(outputs[key], wanted, (sizes, key))
                agree(instance[key], wanted, (sizes, key))
                assert same.tobytes() == outputs[key].tobytes(), (sizes, key)
            runs.append((feed, expected))
        saved = os.path.join(folder, "family.collage")
        program.save(saved)
        loaded = collage.load(saved)
        for feed, expected in runs:
            for key, array in loaded.run(feed).items():
                agree(array, expected[key], key)

    return f"one module: {name}", check


def agree_in_any_order(outputs, expected, where):
    """Every box found has one of the same label, place and score: boxes of nearly equal scores may change places."""
    for key in expected:
        assert outputs[key].shape == expected[key].shape and outputs[key].dtype == expected[key].dtype, (where, key)
    left = set(range(len(expected["labels"])))
    for box, label, score in zip(*(expected[key] for key in ("boxes", "labels", "scores"))):
        same = [i for i in left if outputs["labels"][i] == label and abs(outputs["scores"][i] - score) < 1e-3
                and np.abs(outputs["boxes"][i] - box).max() < 1e-3 * np.abs(expected["boxes"]).max()]
        assert same, (where, box, label, score)
        left.remove(same[0])


def detector(name):
    """Images of several sizes, in which different numbers of boxes are found."""
    def check(folder):
        path = os.path.join(folder, f"{name}.onnx")
        with lzma.open(os.path.join(HERE, "detectors", f"{name}.onnx.xz")) as packed, open(path, "wb") as file:
            file.write(packed.read())
        program = collage.load_dynamic(path, targets="native", database=os.path.join(folder, "costs.db"))
        counts, outputs = set(), {}
        for seed, size in enumerate(((128, 128), (128, 128), (96, 160), (128, 128))):
            feed = {"image": random_image(seed, *size)}
            expected, outputs = expected_of(path, feed), program.run(feed)
            counts.add(len(expected["labels"]))
            agree_in_any_order(outputs, expected, seed)
        assert len(counts) > 2, counts
        # From a file, for one of these images and one of another number of boxes.
        saved = os.path.join(folder, "saved.collage")
        program.save(saved)
        os.remove(path)
        again = collage.load_dynamic(saved, database=os.path.join(folder, "costs.db"), compile_on_demand=False)
        for key, array in again.run(feed).items():
            np.testing.assert_array_equal(array, outputs[key], err_msg=key)
        other = {"image": random_image(7, 128, 128)}
        agree_in_any_order(collage.load_dynamic(saved, database=os.path.join(folder, "costs.db")).run(other), program.run(other), 7)

    return f"detector: {name}", check


def detector_module(name):
    """One module, in which the numbers of boxes are symbols: a program of it, the same from its text, and a file for any number."""
    def check(folder):
        path, costs = os.path.join(folder, f"{name}.onnx"), os.path.join(folder, "costs.db")
        with lzma.open(os.path.join(HERE, "detectors", f"{name}.onnx.xz")) as packed, open(path, "wb") as file:
            file.write(packed.read())
        family = collage.load_symbolic(path, dims={"height": "128", "width": "128"})
        assert all(symbol.startswith("count") for symbol in family.symbols) and len(family.symbols) > 5, family
        assert [info.dims[0] for info in family.outputs] == [family.outputs[0].dims[0]] * 3 and "min(count" in family.outputs[0].dims[0], family
        text, saved = os.path.join(folder, "family.relay"), os.path.join(folder, "family.collage")
        family.save(text)
        program, again = family.compile(targets="native", database=costs), collage.load_dynamic(text, targets="native", database=costs)
        images = [{"image": random_image(seed, 128, 128)} for seed in range(4)]
        program.run(images[0])
        program.save(saved)
        loaded, counts = collage.load(saved), set()
        for seed, feed in enumerate(images):
            expected, outputs = expected_of(path, feed), program.run(feed)
            counts.add(len(expected["labels"]))
            for of in (outputs, dict(zip(outputs, again.run(feed).values())), loaded.run(feed)):
                agree_in_any_order(of, expected, seed)
        assert len(counts) > 2, counts

    return f"one module: {name}", check


CHECKS = [given_sizes(name) for name in SIZES]
if hasattr(collage, "load_dynamic"):
    CHECKS += [one_program(name) for name in SIZES] + [one_module(name) for name in SIZES] + [detector(name) for name in DETECTORS]
    CHECKS += [detector_module(name) for name in DETECTORS]

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:]))
