"""torch.compile with Collage, with TorchInductor, and PyTorch as it is: one model after the other, the contenders in turns.

    python bench/torch_compile.py [--models resnet18,vit_b_16,bert] [--onnx] [--threads N] [--duration 10] [--block 0.25] [--json FILE]

Needs an environment with the wheel, torch, torchvision and transformers, and a C++ compiler for TorchInductor (with --onnx, onnx and onnxscript). Weights are
seeded random. All contenders have the same number of threads, by default as many as there are cores. Every turn gives each contender a block of runs, in
an order that rotates; what is compared are medians over all runs, and the speed-up of Collage over the faster of the others is the median of its
ratios turn by turn. Leave the machine alone meanwhile.

Every output is compared with PyTorch's. Exit status 1: one of Collage's differs from it by more than --tolerance of its largest value, or a graph ran in PyTorch
instead.
"""

import argparse
import logging
import os
import statistics
import sys
import tempfile
import time

import torch
import turns

import collage


def image(name, *shape):
    def make():
        import torchvision

        model = torchvision.models.get_model(name, weights=None).eval()
        for head in (getattr(model, "heads", None), getattr(model, "fc", None)):
            for layer in head.modules() if head is not None else ():
                if isinstance(layer, torch.nn.Linear):
                    torch.nn.init.normal_(layer.weight, std=0.02)  # zeros in some: every output would agree
        return model, (torch.randn(1, 3, *shape),)

    return make


def text(model, config):
    def make():
        import transformers

        made = getattr(transformers, model)(getattr(transformers, config)()).eval()
        made.config.use_cache = False
        return made, (torch.randint(0, 30000, (1, 128)),)

    return make


# Ten public exports: what most people run.
MODELS = {
    "resnet18": image("resnet18", 224, 224), "resnet50": image("resnet50", 224, 224), "resnext50": image("resnext50_32x4d", 224, 224),
    "inception_v3": image("inception_v3", 299, 299), "mobilenet_v2": image("mobilenet_v2", 224, 224),
    "efficientnet_b0": image("efficientnet_b0", 224, 224), "r3d_18": image("r3d_18", 16, 112, 112), "vit_b_16": image("vit_b_16", 224, 224),
    "bert": text("BertModel", "BertConfig"), "gpt2": text("GPT2Model", "GPT2Config"),
}


def tensors_of(output):
    if isinstance(output, torch.Tensor):
        return [output]
    return [value for value in (output.values() if isinstance(output, dict) else output) if isinstance(value, torch.Tensor)]


def difference(outputs, expected):
    """The largest of any output, as a part of that output's largest value."""
    outputs, expected = tensors_of(outputs), tensors_of(expected)
    if [output.shape for output in outputs] != [output.shape for output in expected]:
        return float("inf")
    found = [((ours - theirs).abs().max() / theirs.abs().max()).item() for ours, theirs in zip(outputs, expected)]
    return max(part if part == part else float("inf") for part in found)  # NaN agrees with nothing


class Warnings(logging.Handler):
    """What the backend said of graphs that PyTorch has to run."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.told = []
        logging.getLogger("collage.torch").addHandler(self)

    def emit(self, record):
        self.told.append(record.getMessage())


def compare(name, options, warnings):
    torch.manual_seed(0)
    warnings.told.clear()
    model, inputs = MODELS[name]()
    result = {"model": name, "compile_s": {}, "median_ms": {}, "max_difference": {}}
    chosen = {"threads": options.threads, "effort": options.effort} | ({"targets": options.targets} if options.targets else {})
    contenders = {"eager": model, "inductor": torch.compile(model, backend="inductor"),
                  "collage": torch.compile(model, backend="collage", options=chosen)}
    if options.onnx:
        contenders = {"eager": model, "collage": contenders["collage"], "onnx": through_onnx(model, inputs, chosen)}
    expected = model(*inputs)
    for contender, run in contenders.items():
        begin = time.perf_counter()
        outputs = run(*inputs)
        result["compile_s"][contender] = time.perf_counter() - begin
        result["max_difference"][contender] = difference(outputs, expected)
        print(f"{name}: {contender} is ready after {result['compile_s'][contender]:.1f} s", file=sys.stderr, flush=True)
    idle = lambda: time.sleep(0.05)  # until idle threads of the one before sleep, too
    runs = turns.blocks(contenders, inputs, options.block, turns.until(options.duration * len(contenders)), between=idle)
    for contender, blocks in runs.items():
        result["median_ms"][contender] = 1e3 * statistics.median(s for samples in blocks for s in samples)
    rival = "onnx" if options.onnx else min(("eager", "inductor"), key=lambda other: result["median_ms"][other])
    took = turns.medians(runs)
    result |= {"rival": rival, "speed_up": turns.ratio(took, rival, "collage"), "turns": len(took["collage"]), "ran_in_pytorch": list(warnings.told)}
    return result


def through_onnx(model, inputs, chosen):
    """The same model, exported to a file, compiled by Collage when it is first called."""
    programs = []

    def run(*tensors):
        if not programs:
            with tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "model.onnx")
                torch.onnx.export(model, inputs, path, dynamo=True, verbose=False, external_data=True)
                programs.append(collage.load(path).compile(**chosen))
        outputs = programs[0](*tensors)
        return outputs if isinstance(outputs, tuple) else (outputs,)

    return run


def wrong_with(result, options):
    """In words; empty where Collage's own code gave what PyTorch gives."""
    wrong = [f"{result['model']}: {told}" for told in result["ran_in_pytorch"]]
    if not result["max_difference"]["collage"] <= options.tolerance:
        wrong.append(f"{result['model']}: outputs differ from PyTorch's by {result['max_difference']['collage']:.1e}, more than {options.tolerance:g}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tolerance", type=float, default=1e-3, help="a part of an output's largest value")
    parser.add_argument("--duration", type=float, default=10, help="seconds of runs a contender")
    parser.add_argument("--block", type=float, default=0.25, help="seconds of runs in one turn")
    parser.add_argument("--effort", default="default", help="of Collage's search for kernels")
    parser.add_argument("--targets", default="", help="of Collage (default: all)")
    parser.add_argument("--onnx", action="store_true", help="beside the same model through a file of ONNX (needs onnxscript), not TorchInductor")
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results, warnings, wrong = [], Warnings(), []
    other = "onnx" if options.onnx else "inductor"
    print(f"| model | Collage ms | {other} ms | eager ms | speed-up | largest difference | of {other} |\n| --- | --- | --- | --- | --- | --- | --- |")
    with torch.no_grad():
        for name in options.models.split(","):
            result = compare(name, options, warnings)
            results.append(result)
            wrong += wrong_with(result, options)
            ms = result["median_ms"]
            print(f"| {name} | {ms['collage']:.2f} | {ms[other]:.2f} | {ms['eager']:.2f} | {result['speed_up']:.2f}x over {result['rival']} "
                  f"| {result['max_difference']['collage']:.1e} | {result['max_difference'][other]:.1e} |", flush=True)
    if not options.onnx:
        faster = sum(result["speed_up"] > 1 for result in results)
        print(f"Collage is faster than eager and inductor on {faster} of {len(results)}")
    return turns.finish({"torch": torch.__version__, "threads": options.threads, "results": results}, options.json, wrong)


if __name__ == "__main__":
    sys.exit(main())
