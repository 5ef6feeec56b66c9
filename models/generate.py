"""Writes benchmark models as ONNX files with seeded weights.

    python models/generate.py NAME... [-o DIR] [--small] [--seed N] [--dynamic-batch] [--dtype float16] [--quantise [--weight-bits 7]]
                              [--stats] [--list]

NAME is one of --list, or `workloads` (the ten benchmark models), `exports` (the second family), `open` (models whose
dimensions have names, to be given sizes when they run) or `all`. `--small` keeps
a model's structure and shrinks its channels, depth and sizes to under 3 MB and 0.1 GFLOP. `--dtype float16` rounds
weights to it and has every tensor in it; the file is NAME_float16.onnx. `--quantise` makes NAME_int8.onnx with ONNX Runtime's
tool (quantise.py), with `--weight-bits 7` NAME_int7.onnx, for processors without VNNI. The same seed gives a byte-identical file.
"""

import argparse
import os
import sys
import tempfile

import bert
import dcgan
import diffusion_unet
import gpt2
import gpt2_cache
import half_precision
import llama
import lstm_lengths
import mnist
import mobilenet
import nasnet_a
import nasrnn
import resnet
import vit
import whisper
import yolov3

WORKLOADS = {
    "bert": bert.bert,
    "resnet50": resnet.resnet50,
    "resnext50": resnet.resnext50,
    "nasnet_a": nasnet_a.nasnet_a,
    "dcgan": dcgan.dcgan,
    "resnet50_3d": resnet.resnet50_3d,
    "nasrnn": nasrnn.nasrnn,
    "gpt2": gpt2.gpt2,
    "mobilenet_v2": mobilenet.mobilenet_v2,
    "yolov3": yolov3.yolov3,
}
EXPORTS = {
    "mnist": mnist.mnist,
    "resnet50_full": resnet.resnet50_full,
    "bert_base": bert.bert_base,
    "gpt2_128": gpt2.gpt2_128,
    "vit_b16": vit.vit_b16,
    "efficientnet_b0": mobilenet.efficientnet_b0,
}
VARIANTS = {"mobilenet_v2_b32": mobilenet.mobilenet_v2_b32}
OPEN = {  # dimensions have names and no sizes
    "bert_dynamic": bert.bert_dynamic,
    "gpt2_cache": gpt2_cache.gpt2_cache,
    "whisper_encoder": whisper.whisper_encoder,
    "whisper_decoder": whisper.whisper_decoder,
    "whisper_decoder_with_past": whisper.whisper_decoder_with_past,
    "lstm_lengths": lstm_lengths.lstm_lengths,
    "diffusion_unet": diffusion_unet.diffusion_unet,
    "llama": llama.llama,
}
MODELS = WORKLOADS | EXPORTS | VARIANTS | OPEN
GROUPS = {"workloads": WORKLOADS, "exports": EXPORTS, "open": OPEN, "all": MODELS}
DYNAMIC_BATCH = ("resnet50", "resnext50", "resnet50_3d", "resnet50_full", "mobilenet_v2", "efficientnet_b0", "mnist")
QUANTISED = ("mnist", "resnet50", "mobilenet_v2", "bert_base")
EXTERNAL = ("nasrnn",)  # near or above the two gigabytes that a protobuf message may hold


def generate(name, folder, small=False, seed=0, dynamic_batch=False, dtype="float32", quantised=False,
             weight_bits=8):
    """Writes FOLDER/NAME.onnx (and NAME.onnx.data for a very large model); returns its path and its builder.

    NAME_float16.onnx for that type; a quantised model is NAME_int8.onnx or NAME_int7.onnx, by the bits of its weights, and
    the one it is made of is not kept.
    """
    os.makedirs(folder, exist_ok=True)
    half = dtype == "float16"
    path = os.path.join(folder, f"{name}_float16.onnx" if half else f"{name}.onnx")
    extra = {"external_path": path + ".data"} if name in EXTERNAL and not small else {}
    builder = MODELS[name](seed, small, **extra)
    if quantised:
        import quantise  # ONNX Runtime's tool, which nothing else here wants

        with tempfile.TemporaryDirectory() as beside:
            real = os.path.join(beside, "real.onnx")
            builder.save(real, dynamic_batch)
            return quantise.quantise(real, os.path.join(folder, f"{name}_int{weight_bits}.onnx"), seed, weight_bits), builder
    builder.save(path, dynamic_batch, half_precision.to_float16 if half else None)
    return path, builder


def stats_line(name, builder):
    s = builder.stats()
    return (f"{name:25} opset {builder.opset:2} {s['nodes']:4} nodes {s['flops'] / 1e9:9.3f} GFLOP, "
            f"{s['flops_folded'] / 1e9:.3f} of them between constants {s['weight_bytes'] / 2**20:9.2f} MiB of weights")


def main():
    parser = argparse.ArgumentParser(description="Write benchmark models as ONNX files with seeded weights.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a model, `workloads`, `exports`, `open` or `all`")
    parser.add_argument("-o", "--output", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "out"),
                        metavar="DIR", help="where the files go (default: out/ beside this file)")
    parser.add_argument("--small", action="store_true", help="the same structure, small enough for a test")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default 0)")
    parser.add_argument("--dynamic-batch", action="store_true", help='make dimension 0 the symbol "batch"')
    parser.add_argument("--dtype", choices=("float32", "float16"), default="float32", help="of every tensor (default float32)")
    parser.add_argument("--quantise", action="store_true", help=f"to 8-bit integers; of {', '.join(QUANTISED)}")
    parser.add_argument("--weight-bits", type=int, choices=(7, 8), default=8, help="of a quantised model's weights (default 8)")
    parser.add_argument("--stats", action="store_true", help="print nodes, operations and bytes of weights")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    options = parser.parse_args()
    if options.list:
        print("\n".join(MODELS))
        return 0
    if not options.names:
        parser.error("no model named; --list prints the names")
    if options.seed < 0:
        parser.error("--seed must not be negative")
    names = [n for given in options.names for n in GROUPS.get(given, [given])]
    unknown = [n for n in names if n not in MODELS]
    if unknown:
        parser.error(f"no model is called {', '.join(unknown)}; --list prints the names")
    if options.dynamic_batch and (fixed := [n for n in names if n not in DYNAMIC_BATCH]):
        parser.error(f"--dynamic-batch works with {', '.join(DYNAMIC_BATCH)}, not with {', '.join(fixed)}")
    if options.dtype == "float16" and not options.small and (large := [n for n in names if n in EXTERNAL]):
        parser.error(f"--dtype float16 works without --small only with weights in the model's own file, not with {', '.join(large)}")
    if options.quantise and (real := [n for n in names if n not in QUANTISED]):
        parser.error(f"--quantise works with {', '.join(QUANTISED)}, not with {', '.join(real)}")
    if options.quantise and (options.dtype != "float32" or options.dynamic_batch):
        parser.error("--quantise goes with neither --dtype nor --dynamic-batch")
    if options.weight_bits != 8 and not options.quantise:
        parser.error("--weight-bits goes with --quantise")
    for name in dict.fromkeys(names):
        path, builder = generate(name, options.output, options.small, options.seed, options.dynamic_batch, options.dtype,
                                 options.quantise, options.weight_bits)
        print(stats_line(name, builder) if options.stats else path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
