"""torch.compile with Collage, with TorchInductor, and PyTorch as it is: one model after the other, the contenders in turns.

    python bench/torch_compile.py [--models resnet18,vit_b_16,bert] [--threads N] [--duration 10] [--block 0.25] [--json FILE]

Needs an environment with the wheel, torch, torchvision, transformers, onnx and onnxscript, and a C++ compiler for TorchInductor. Weights are
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
import time

import torch
import turns


def resnet18():
    import torchvision

    return torchvision.models.resnet18().eval(), (torch.randn(1, 3, 224, 224),)


def vit_b_16():
    import torchvision

    model = torchvision.models.vit_b_16().eval()
    torch.nn.init.normal_(model.heads.head.weight, std=0.02)  # zeros otherwise: every output would agree
    return model, (torch.randn(1, 3, 224, 224),)


def bert():
    import transformers

    model = transformers.BertModel(transformers.BertConfig()).eval()
    return model, (torch.randint(0, 30000, (1, 128)),)


MODELS = {"resnet18": resnet18, "vit_b_16": vit_b_16, "bert": bert}


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
    contenders = {"eager": model, "inductor": torch.compile(model, backend="inductor"),
                  "collage": torch.compile(model, backend="collage", options={"threads": options.threads})}
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
    rival = min(("eager", "inductor"), key=lambda other: result["median_ms"][other])
    took = turns.medians(runs)
    result |= {"rival": rival, "speed_up": turns.ratio(took, rival, "collage"), "turns": len(took["collage"]), "ran_in_pytorch": list(warnings.told)}
    return result


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
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    results, warnings, wrong = [], Warnings(), []
    print("| model | Collage ms | inductor ms | eager ms | speed-up | largest difference | of inductor |\n| --- | --- | --- | --- | --- | --- | --- |")
    with torch.no_grad():
        for name in options.models.split(","):
            result = compare(name, options, warnings)
            results.append(result)
            wrong += wrong_with(result, options)
            ms = result["median_ms"]
            print(f"| {name} | {ms['collage']:.2f} | {ms['inductor']:.2f} | {ms['eager']:.2f} | {result['speed_up']:.2f}x over {result['rival']} "
                  f"| {result['max_difference']['collage']:.1e} | {result['max_difference']['inductor']:.1e} |", flush=True)
    faster = sum(result["speed_up"] > 1 for result in results)
    print(f"Collage is faster than eager and inductor on {faster} of {len(results)}")
    return turns.finish({"torch": torch.__version__, "threads": options.threads, "results": results}, options.json, wrong)


if __name__ == "__main__":
    sys.exit(main())
