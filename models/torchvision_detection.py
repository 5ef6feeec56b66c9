"""Exports torchvision's mobile detectors, random weights, for what only such models have: boxes counted at run time.

    python models/torchvision_detection.py [NAME...] [-o DIR] [--seed N] [--dynamic]

NAME is ssdlite320_mobilenet_v3_large or fasterrcnn_mobilenet_v3_large_320_fpn, both by default. Needs torch, torchvision, onnx
and onnxscript. One image (3, 320, 320) goes in, with --dynamic one of any height and width; boxes, labels and scores come
out, as many as are found. Heads are scaled so that random weights find some, and not the same number in every image:
the mean of class scores over a batch of images is taken out, what is left is widened.

The TorchScript exporter writes them: torch.export of torch 2.15 refuses both, since torchvision branches on the number
of boxes (GuardOnDataDependentSymNode).
"""

import argparse
import os
import sys

OPSET = 17
SIZE = 320
try:
    import torch
    import torchvision
except ImportError as missing:
    sys.exit(f"error: {missing.name} is missing: pip install torch torchvision onnx onnxscript")


def images(seed, count, height=SIZE, width=SIZE):
    """Noise of several scales between 0 and 1: flat in places, busy in others, as photographs are."""
    generator = torch.Generator().manual_seed(seed)
    total = torch.zeros(count, 3, height, width)
    for cells in (3, 8, 20, 50, 160):
        noise = torch.randn(count, 3, cells, cells, generator=generator)
        total += torch.nn.functional.interpolate(noise, (height, width), mode="bilinear")
    return torch.sigmoid(total)


def _prepared(model):
    return model.transform(list(images(1, 8)))[0].tensors


def _normalise(model, layers, batch):
    """Running statistics of batch norms as the images give them, else activations die out in a deep random network."""
    norms = [m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.reset_running_stats()
        norm.momentum = None  # a plain average
        norm.train()
    with torch.no_grad():
        layers(batch)
    for norm in norms:
        norm.eval()


def _widen(layer, outputs, spread):
    """Scales what a last layer gives to a standard deviation of `spread` about zero, channel by channel."""
    axes = [a for a in range(outputs.dim()) if a != 1]
    mean, deviation = outputs.mean(axes), outputs.std(axes) + 1e-6
    factor = spread / deviation
    with torch.no_grad():
        layer.weight *= factor.reshape([-1] + [1] * (layer.weight.dim() - 1))
        layer.bias.copy_((layer.bias - mean) * factor)


def _outputs_of(layer, call):
    """All that a layer gives during a call, (n, channels, places)."""
    seen = []
    hook = layer.register_forward_hook(lambda _m, _i, out: seen.append(out.reshape(*out.shape[:2], -1)))
    with torch.no_grad():
        call()
    hook.remove()
    return torch.cat(seen, -1)


def ssdlite320_mobilenet_v3_large():
    model = torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, score_thresh=0.35, topk_candidates=100).eval()
    batch = _prepared(model)
    _normalise(model, lambda x: model.head(list(model.backbone(x).values())), batch)
    features = list(model.backbone(batch).values())
    for head, spread in ((model.head.classification_head, 1.2), (model.head.regression_head, 0.7)):
        for block in head.module_list:
            last = block[1]
            _widen(last, _outputs_of(last, lambda: head(features)), spread)
    return model


def fasterrcnn_mobilenet_v3_large_320_fpn():
    model = torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, box_score_thresh=0.35).eval()
    _normalise(model, model.backbone, _prepared(model))
    whole = list(images(1, 8))
    for layer, spread in ((model.rpn.head.cls_logits, 1.5), (model.rpn.head.bbox_pred, 0.4),
                          (model.roi_heads.box_predictor.cls_score, 1.7), (model.roi_heads.box_predictor.bbox_pred, 1.0)):
        _widen(layer, _outputs_of(layer, lambda: model(whole)), spread)
    return model


DETECTORS = {d.__name__: d for d in (ssdlite320_mobilenet_v3_large, fasterrcnn_mobilenet_v3_large_320_fpn)}


class OneImage(torch.nn.Module):
    """The image in and the three outputs by position, which both exporters take without dictionaries."""

    def __init__(self, detector):
        super().__init__()
        self.detector = detector

    def forward(self, image):
        found = self.detector([image])
        if isinstance(found, tuple):  # scripted detectors give losses too
            found = found[1]
        return found[0]["boxes"], found[0]["labels"], found[0]["scores"]


def export(name, path, seed=0, dynamic=False):
    torch.manual_seed(seed)
    torch.set_grad_enabled(False)
    model = OneImage(DETECTORS[name]()).eval()
    axes = {"boxes": {0: "found"}, "labels": {0: "found"}, "scores": {0: "found"}}
    if dynamic:
        axes["image"] = {1: "height", 2: "width"}
    torch.onnx.export(model, (images(2, 1)[0],), path, dynamo=False, dynamic_axes=axes, opset_version=OPSET,
                      input_names=["image"], output_names=["boxes", "labels", "scores"])


def main():
    parser = argparse.ArgumentParser(description="Export torchvision's mobile detectors with random weights.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" or ".join(DETECTORS))
    parser.add_argument("-o", "--output", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "out"),
                        metavar="DIR", help="where the files go (default: out/ beside this file)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default 0)")
    parser.add_argument("--dynamic", action="store_true", help="an image of any height and width")
    options = parser.parse_args()
    if unknown := [n for n in options.names if n not in DETECTORS]:
        parser.error(f"no detector is called {', '.join(unknown)}; there are {' and '.join(DETECTORS)}")
    os.makedirs(options.output, exist_ok=True)
    for name in options.names or DETECTORS:
        path = os.path.join(options.output, f"{name}_dynamic.onnx" if options.dynamic else f"{name}.onnx")
        export(name, path, options.seed, options.dynamic)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
