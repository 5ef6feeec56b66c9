"""The Python package and files of others: signed artifacts, external data behind links.

    python tests/python/trust_test.py [CHECK...]

Takes the build that COLLAGE_BIN lies in (default build/release). Prints "N passed, 0 failed" or what went wrong.
"""

import os
import sys

import numpy as np
import onnx

import built_package
import signing_keys
import tiny_models

if built_package.BUILT:
    import collage

KEYS = signing_keys.KEYS


def refusal(call):
    try:
        call()
    except collage.Error as wrong:
        return wrong.code, str(wrong)
    raise AssertionError("nothing was refused")


def check_signatures(folder):
    """What was signed is loaded by its key, from a file and from memory, and by no other; what was not is refused where a key is given."""
    model = os.path.join(folder, "net.onnx")
    onnx.save(tiny_models.small_net(), model)
    compiled = collage.load(model).compile(targets="reference", database=os.path.join(folder, "costs.db"))
    signed, plain = os.path.join(folder, "signed.collage"), os.path.join(folder, "plain.collage")
    compiled.save(signed, signing_key=KEYS["PrivateKey"])
    compiled.save(plain)
    image = np.random.default_rng(0).random((1, 3, 12, 12), np.float32)
    with open(signed, "rb") as file:
        data = file.read()
    for source in (signed, data):
        loaded = collage.load(source, public_key=KEYS["PublicKey"])
        np.testing.assert_array_equal(loaded(image), compiled(image))
        assert loaded.report["model"] == "net.onnx"
        code, said = refusal(lambda: collage.load(source, public_key=KEYS["OtherPublicKey"]))
        assert code == collage.ErrorCode.BAD_MODEL and "its signature" in said, said
    assert "it is not signed" in refusal(lambda: collage.load(plain, public_key=KEYS["PublicKey"]))[1]
    for key in ("", "no key", KEYS["PrivateKey"]):
        code, said = refusal(lambda: collage.load(signed, public_key=key))
        assert code == collage.ErrorCode.USAGE and "no public key" in said, said
    assert refusal(lambda: collage.load(os.path.join(folder, "absent.collage"), public_key=KEYS["PublicKey"]))[0] == collage.ErrorCode.USAGE
    assert "no private key" in refusal(lambda: compiled.save(plain, signing_key="no key"))[1]


def check_signed_programs_of_several_shapes(folder):
    """The same of what `load_dynamic` saved."""
    model, path = os.path.join(folder, "relu.onnx"), os.path.join(folder, "relu.collage")
    onnx.save(tiny_models.relu_model(("batch", 3)), model)
    program = collage.load_dynamic(model, targets="reference", database=os.path.join(folder, "costs.db"), buckets={"batch": [4]})
    program.prepare_buckets()
    program.save(path, signing_key=KEYS["PrivateKey"])
    loaded = collage.load(path, public_key=KEYS["PublicKey"])
    np.testing.assert_array_equal(loaded(np.full((2, 3), -1, np.float32)), np.zeros((2, 3), np.float32))
    assert "its signature" in refusal(lambda: collage.load(path, public_key=KEYS["OtherPublicKey"]))[1]


def check_data_roots(folder):
    """External data behind a link that leaves the model's folder."""
    for name in ("model", "elsewhere"):
        os.mkdir(os.path.join(folder, name))
    model, elsewhere = os.path.join(folder, "model", "net.onnx"), os.path.join(folder, "elsewhere")
    with open(model, "wb") as file:
        file.write(tiny_models.external_model("data").SerializeToString())
    with open(os.path.join(elsewhere, "data"), "wb") as file:
        file.write(np.arange(4, dtype=np.float32).tobytes())
    os.symlink(os.path.join(elsewhere, "data"), os.path.join(folder, "model", "data"))
    code, said = refusal(lambda: collage.load(model))
    assert code == collage.ErrorCode.BAD_MODEL and "outside the model's folder" in said, said
    loaded = collage.load(model, data_roots=[elsewhere]).compile(targets="reference", database=os.path.join(folder, "costs.db"))
    np.testing.assert_array_equal(loaded(np.ones((1, 4), np.float32)), [[1, 2, 3, 4]])
    dynamic = collage.load_dynamic(model, targets="reference", database=os.path.join(folder, "costs.db"), data_roots=[elsewhere])
    np.testing.assert_array_equal(dynamic(np.ones((1, 4), np.float32)), [[1, 2, 3, 4]])


CHECKS = (check_signatures, check_signed_programs_of_several_shapes, check_data_roots)

if __name__ == "__main__":
    sys.exit(built_package.run(CHECKS, sys.argv[1:]))
