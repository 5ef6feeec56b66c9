"""torch.compile with Collage, with TorchInductor, and PyTorch as it is: one model after the other, the contenders in turns.

    python bench/torch_compile.py [--models resnet18,vit_b_16,bert] [--duration 10] [--block 0.25] [--json FILE]

Needs an environment with the wheel, torch, torchvision, transformers, onnx and onnxscript. Weights are seeded random. Every turn gives each
contender a block of runs, in an order that rotates; what is compared are medians over all runs, and the speed-up of Collage over the faster of
the others is the median of its ratios turn by turn. Outputs are compared with PyTorch's. Leave the machine alone meanwhile.
"""

import argparse
import json
import statistics
import sys
import time

import torch


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


def first_tensor(output):
    return output if isinstance(output, torch.Tensor) else output[0]


def measure(contenders, inputs, duration, block):
    """Seconds of single runs by contender, one list a turn."""
    turns = {name: [] for name in contenders}
    names = list(contenders)
    end = time.perf_counter() + duration * len(names)
    while time.perf_counter() < end:
        names.append(names.pop(0))
        for name in names:
            run, samples = contenders[name], []
            run(*inputs)  # its own weights into the caches
            stop = time.perf_counter() + block
            while not samples or time.perf_counter() < stop:
                begin = time.perf_counter()
                run(*inputs)
                samples.append(time.perf_counter() - begin)
            turns[name].append(samples)
    return turns


def compare(name, options):
    torch.manual_seed(0)
    model, inputs = MODELS[name]()
    result = {"model": name, "compile_s": {}, "median_ms": {}, "max_difference": {}}
    contenders = {"eager": model, "inductor": torch.compile(model, backend="inductor"),
                  "collage": torch.compile(model, backend="collage")}
    expected = first_tensor(model(*inputs))
    for contender, run in contenders.items():
        begin = time.perf_counter()
        outputs = first_tensor(run(*inputs))
        result["compile_s"][contender] = time.perf_counter() - begin
        result["max_difference"][contender] = ((outputs - expected).abs().max() / expected.abs().max()).item()
        print(f"{name}: {contender} is ready after {result['compile_s'][contender]:.1f} s", file=sys.stderr, flush=True)
    turns = measure(contenders, inputs, options.duration, options.block)
    for contender, blocks in turns.items():
        result["median_ms"][contender] = 1e3 * statistics.median(s for samples in blocks for s in samples)
    rival = min(("eager", "inductor"), key=lambda other: result["median_ms"][other])
    ratios = [statistics.median(theirs) / statistics.median(ours) for theirs, ours in zip(turns[rival], turns["collage"])]
    result |= {"rival": rival, "speed_up": statistics.median(ratios), "turns": len(ratios)}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--duration", type=float, default=10, help="seconds of runs a contender")
    parser.add_argument("--block", type=float, default=0.25, help="seconds of runs in one turn")
    parser.add_argument("--json", help="write the figures here")
    options = parser.parse_args()
    results = []
    print("| model | Collage ms | inductor ms | eager ms | speed-up | largest difference |\n| --- | --- | --- | --- | --- | --- |")
    with torch.no_grad():
        for name in options.models.split(","):
            result = compare(name, options)
            results.append(result)
            ms = result["median_ms"]
            print(f"| {name} | {ms['collage']:.2f} | {ms['inductor']:.2f} | {ms['eager']:.2f} | {result['speed_up']:.2f}x over {result['rival']} "
                  f"| {result['max_difference']['collage']:.1e} |", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "threads": torch.get_num_threads(), "results": results}, file, indent=1)


if __name__ == "__main__":
    main()
