"""A decoder with a cache, token after token: Collage, which keeps the cache as states, and ONNX Runtime, which is given it each time.

    python bench/decode.py gpt2_cache.onnx [--prompt 64] [--tokens 128] [--buckets 192] [--limit 1.0]

The model has inputs input_ids, attention_mask, position_ids (if it wants them) and past_key_values.N.key/value, and outputs logits and
present.N.key/value, as models/gpt2_cache.py writes it. Every token's logits are compared. The two take turns, a prompt and its tokens each:
token by token, the threads of the one would still spin while the other computes. Exit status 1: logits differ, or Collage's median token takes
more than --limit times ONNX Runtime's.
"""

import argparse
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers"))

import no_telemetry  # before the runtime
import numpy as np
import onnxruntime

import collage


def resident_bytes():
    """Anonymous memory of this process: files that are mapped are nobody's copy."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        fields = dict(line.split(":", 1) for line in file if ":" in line)
    return 1024 * int(fields["Anonymous"].split()[0])


class Cached:
    """ONNX Runtime with the cache handed from run to run."""

    def __init__(self, path, threads):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.inputs = [value.name for value in self.session.get_inputs()]
        self.names = [value.name for value in self.session.get_outputs()]
        self.reset()

    def reset(self):
        self.cache = {}
        for value in self.session.get_inputs():
            if value.name.startswith("past"):
                heads, width = value.shape[1], value.shape[3]
                self.cache[value.name] = np.zeros((1, heads, 0, width), np.float32)

    def __call__(self, inputs):
        results = dict(zip(self.names, self.session.run(None, inputs | self.cache)))
        for name in self.cache:
            self.cache[name] = results[name.replace("past_key_values", "present")]
        return results["logits"]


class Kept:
    """Collage, which keeps the cache itself."""

    def __init__(self, program):
        self.program = program
        self.inputs = [info.name for info in program.inputs]

    def reset(self):
        self.program.reset()

    def __call__(self, inputs):
        return self.program.run(inputs)["logits"]


def feeds(names, tokens, past):
    length = tokens.shape[1]
    given = {"input_ids": tokens, "attention_mask": np.ones((1, past + length), np.int64),
             "position_ids": np.arange(past, past + length, dtype=np.int64)[None]}
    return {name: value for name, value in given.items() if name in names}


def chosen(run, prompt, count):
    """The tokens that follow the prompt, each the likeliest."""
    tokens, past, step = [], 0, prompt
    run.reset()
    while len(tokens) < count:
        logits = run(feeds(run.inputs, step, past))
        past += step.shape[1]
        step = logits[:, -1:].argmax(axis=-1)
        tokens.append(step)
    return tokens


def generate(run, prompt, tokens):
    """The logits of each step, and the seconds that each token behind the prompt takes."""
    logits, seconds, past = [], [], 0
    run.reset()
    for step in [prompt, *tokens]:
        inputs = feeds(run.inputs, step, past)
        begin = time.perf_counter()
        logits.append(run(inputs))
        seconds.append(time.perf_counter() - begin)
        past += step.shape[1]
    return logits, seconds[1:]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("--prompt", type=int, default=64)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--buckets", type=int, nargs="+", default=[192], help="of the past")
    parser.add_argument("--database", default="")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--targets", default="")
    parser.add_argument("--limit", type=float, default=1.0, help="Collage's median by ONNX Runtime's")
    options = parser.parse_args()

    theirs = Cached(options.model, options.threads)
    states = {name: name.replace("past_key_values", "present") for name in theirs.cache}
    random = np.random.default_rng(7)
    prompt = random.integers(0, 50000, (1, options.prompt))
    tokens = chosen(theirs, prompt, options.tokens)
    before = resident_bytes()
    ours = collage.load_dynamic(options.model, buckets={"past": options.buckets}, states=states, database=options.database,
                                threads=options.threads, targets=options.targets)
    runs = {"collage": Kept(ours), "onnxruntime": theirs}
    ours.prepare(feeds(runs["collage"].inputs, tokens[0], 0))  # one token first: its form of weights is what counts
    ours.prepare(feeds(runs["collage"].inputs, prompt, 0))
    generate(runs["collage"], prompt, tokens[:1])
    memory = resident_bytes() - before
    seconds = {name: [] for name in runs}
    worst = 0.0
    for _ in range(options.turns):
        logits = {}
        for name, run in runs.items():
            logits[name], taken = generate(run, prompt, tokens)
            seconds[name] += taken
        for step, (got, expected) in enumerate(zip(logits["collage"], logits["onnxruntime"])):
            worst = max(worst, float(np.abs(got - expected).max() / np.abs(expected).max()))
            if got[0, -1].argmax() != expected[0, -1].argmax():
                print(f"token {step}: {got[0, -1].argmax()} instead of {expected[0, -1].argmax()}")
                worst = max(worst, 1.0)
    for made in ours.specialisations:
        what = "interpreted" if made.interpreted else f"{made.kernels} kernels, compiled in {made.compile_seconds:.1f} s"
        print(f"{made.part}: {what}, {made.runs} runs: {made.shapes[:100]}")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    ratio = medians["collage"] / medians["onnxruntime"]
    print(f"median token: collage {1e3 * medians['collage']:.2f} ms, onnxruntime {1e3 * medians['onnxruntime']:.2f} ms, ratio {ratio:.2f}")
    print(f"largest error of logits: {worst:.2e} of the largest; memory of collage: {memory / 2**20:.0f} MiB anonymous")
    return 1 if worst > 1e-3 or ratio > options.limit else 0


if __name__ == "__main__":
    sys.exit(main())
