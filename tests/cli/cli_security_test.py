"""Signed artifacts, and that no sub-command uses a network (docs/security.md).

    python tests/cli/cli_security_test.py [CHECK...]

Prints one line a failure, then "N passed, N failed"; exits with 1 if anything failed.
"""

import os
import re
import shutil
import subprocess
import sys

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.dirname(HERE)]

import checks
import command
import signing_keys
import tiny_models

COMPILE = ("--targets", "reference", "--threads", "1")


class Folder:
    """A folder with a model, keys, and two artifacts of which one is signed."""

    def __init__(self, folder):
        self.folder = folder
        onnx.save(tiny_models.small_net(), self.path("net.onnx"))
        for name, text in signing_keys.KEYS.items():
            tiny_models.write(folder, name, text)
        self.run("compile", "net.onnx", "-o", "plain.collage", *COMPILE)
        self.run("compile", "net.onnx", "-o", "signed.collage", "--sign", "PrivateKey", *COMPILE)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *arguments, status=0, **environment):
        result = command.run(arguments, self.folder, cache=self.path("cache"), **environment)
        assert result.returncode == status, f"exit status {result.returncode}: {result.stderr or result.stdout}"
        return result.stderr if status else result.stdout


def check_signed(bench):
    """Every sub-command that takes an artifact takes the signed one with the right key, and refuses all else in one line."""
    verbs = (("run",), ("bench", "--duration", "0.1"), ("verify",), ("explain",), ("view", "-o", "page.html"),
             ("run", "--for", "this", *COMPILE))
    for verb in verbs:
        for file in ("signed.collage", "plain.collage"):
            bench.run(verb[0], file, *verb[1:])
        bench.run(verb[0], "signed.collage", *verb[1:], "--require-signature", "PublicKey")
        for file, key, words in (("plain.collage", "PublicKey", "plain.collage: it is not signed, and a signature is required"),
                                 ("signed.collage", "OtherPublicKey", "signed.collage: its signature is not that of the key")):
            said = bench.run(verb[0], file, *verb[1:], "--require-signature", key, status=3)
            assert words in said and said.count("\n") == 1, said
    # Models are no code.
    bench.run("run", "net.onnx", *COMPILE, "--require-signature", "PublicKey")


def check_several_shapes(bench):
    """A signed program of several shapes."""
    onnx.save(tiny_models.relu_model(("batch", 3)), bench.path("relu.onnx"))
    bench.run("compile", "relu.onnx", "-o", "relu.collage", "--bucket", "batch=4,16", "--sign", "PrivateKey", *COMPILE)
    bench.run("run", "relu.collage", "--require-signature", "PublicKey")
    assert "its signature" in bench.run("run", "relu.collage", "--require-signature", "OtherPublicKey", status=3)


def check_keys(bench):
    """What is no key, and what is not signed, is said before anything is compiled."""
    for flags, words in ((("--sign", "PublicKey"), "--sign PublicKey: this is no private key of Ed25519"),
                         (("--sign", "absent"), "--sign absent: "), (("--sign", "net.onnx"), "no private key"),
                         (("--sign", "PrivateKey", "--emit", "library", "-o", "libnet.so"), "only artifacts are signed")):
        output = () if "-o" in flags else ("-o", "new.collage")
        said = bench.run("compile", "net.onnx", *output, *flags, *COMPILE, status=2)
        assert words in said and said.count("\n") == 1, said
        assert not os.path.exists(bench.path("new.collage"))
    for key, words in (("PrivateKey", "this is no public key of Ed25519"), ("absent", "--require-signature absent: "),
                       ("ForeignPublicKey", "no public key of Ed25519")):
        assert words in bench.run("run", "signed.collage", "--require-signature", key, status=2)


def check_made_by_openssl(bench):
    """Keys as the documented commands make them."""
    if shutil.which("openssl") is None:
        print("skipped: no openssl to make keys with")
        return
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "mine.pem"], cwd=bench.folder, check=True)
    subprocess.run(["openssl", "pkey", "-in", "mine.pem", "-pubout", "-out", "mine.pub"], cwd=bench.folder, check=True)
    bench.run("compile", "net.onnx", "-o", "mine.collage", "--sign", "mine.pem", *COMPILE)
    bench.run("run", "mine.collage", "--require-signature", "mine.pub")
    assert "its signature" in bench.run("run", "mine.collage", "--require-signature", "PublicKey", status=3)


def without_network():
    """How to start a program in a network namespace that has none; () where that is not permitted."""
    for start in (("unshare", "-n"), ("unshare", "-rn")):
        if shutil.which(start[0]) and subprocess.run([*start, "true"], capture_output=True, check=False).returncode == 0:
            return start
    return ()


def check_no_network(bench):
    """All that the command does, it does where there is no network, and asks for none: the only sockets are local ones."""
    start = without_network()
    if not start:
        print("skipped: no network namespace may be made here")
        return
    trace = ("strace", "-f", "-qq", "-o", "trace", "-e", "trace=socket,connect") if shutil.which("strace") else ()
    environment = {k: v for k, v in os.environ.items() if k not in command.CACHE_VARIABLES} | {"COLLAGE_PYTHON": sys.executable} | {"COLLAGE_CACHE": bench.path("cold")}
    asked = re.compile(r"AF_INET|AF_INET6|AF_NETLINK")
    for arguments in (("targets",), ("inspect", "net.onnx"), ("run", "net.onnx", "--threads", "1", "--effort", "fast"),
                      ("verify", "net.onnx", *COMPILE), ("explain", "net.onnx", *COMPILE), ("run", "signed.collage", "--require-signature", "PublicKey"),
                      ("compile", "net.onnx", "-o", "again.collage", *COMPILE), ("db", "info")):
        done = subprocess.run([*start, *trace, command.COLLAGE, *arguments], cwd=bench.folder, env=environment, capture_output=True, text=True, timeout=600,
                              check=False)
        assert done.returncode == 0, f"{arguments}: {done.stderr}"
        if trace:
            with open(bench.path("trace"), encoding="utf-8", errors="replace") as file:
                sockets = [line for line in file if asked.search(line)]
            assert not sockets, f"{arguments}: {sockets}"


CHECKS = (check_signed, check_several_shapes, check_keys, check_made_by_openssl, check_no_network)

if __name__ == "__main__":
    sys.exit(checks.run(CHECKS, sys.argv[1:], Folder))
