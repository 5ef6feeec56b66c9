"""Exports torchvision's mobile detectors, random weights, for what only such models have: boxes counted at run time.

    python models/torchvision_detection.py [NAME...] [-o DIR] [--seed N] [--dynamic] [--small]

NAME is ssdlite320_mobilenet_v3_large or fasterrcnn_mobilenet_v3_large_320_fpn, both by default. Needs torch, torchvision, onnx
and onnxscript. One image (3, 320, 320) goes in, with --dynamic one of any height and width; boxes, labels and scores come
out, as many as are found. Heads are scaled so that random weights find some, and not the same number in every image:
the mean of class scores over a batch of images is taken out, what is left is widened.

What `--small --dynamic` gives is kept, packed by xz, in tests/models/detectors, so that tests need no torch. The TorchScript
exporter writes the models: torch.export of torch 2.15 refuses both, since torchvision branches on the number
of boxes (GuardOnDataDependentSymNode).
"""

import argparse
import os
import sys

import numpy as np
import onnx

from random_inputs import random_image

OPSET = 17
SIZE = 320
SMALL, SMALL_CLASSES = 128, 7
try:
    import torch
    import torchvision
    from torchvision.models import mobilenetv3
    from torchvision.models.detection import _utils, backbone_utils, faster_rcnn, ssdlite
    from torchvision.models.detection.anchor_utils import AnchorGenerator, DefaultBoxGenerator
    from torchvision.models.detection.ssd import SSD
    from torchvision.ops.feature_pyramid_network import LastLevelMaxPool
except ImportError as missing:
    sys.exit(f"error: {missing.name} is missing: pip install torch torchvision onnx onnxscript")


def _images(size):
    return [torch.from_numpy(random_image(seed, size, size)) for seed in range(100, 108)]


def _prepared(model, images):
    """Images as the backbone reads them; beside them noise between -1 and 1, such as programs are checked with.

    Without it a network of these norms magnifies such noise a thousand times.
    """
    generator = np.random.Generator(np.random.PCG64(99))
    noise = [torch.from_numpy(generator.uniform(-1, 1, image.shape).astype(np.float32)) for image in images]
    return model.transform(images + noise)[0].tensors


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


def _small_backbone(width):
    blocks, last = mobilenetv3._mobilenet_v3_conf("mobilenet_v3_large", width_mult=width, reduced_tail=True)
    return mobilenetv3.MobileNetV3(blocks, last, norm_layer=torch.nn.BatchNorm2d)


def _small_ssd(**settings):
    size, classes, norm = (SMALL, SMALL), SMALL_CLASSES, torch.nn.BatchNorm2d
    backbone = ssdlite.SSDLiteFeatureExtractorMobileNet(_small_backbone(0.15).features, 13, norm, 0.1, 8)
    anchors = DefaultBoxGenerator([[2, 3]] * 6, min_ratio=0.2, max_ratio=0.95)
    channels = _utils.retrieve_out_channels(backbone, size)
    head = ssdlite.SSDLiteHead(channels, anchors.num_anchors_per_location(), classes, norm)
    return SSD(backbone, anchors, size, classes, head=head, image_mean=[0.5] * 3, image_std=[0.5] * 3, **settings)


def ssdlite320_mobilenet_v3_large(small):
    settings = {"score_thresh": 0.85 if small else 0.35, "topk_candidates": 100}
    model = _small_ssd(**settings) if small else torchvision.models.detection.ssdlite320_mobilenet_v3_large(
        weights=None, weights_backbone=None, **settings)
    images = _images(SMALL if small else SIZE)
    _normalise(model.eval(), lambda x: model.head(list(model.backbone(x).values())), _prepared(model, images))
    features = list(model.backbone(model.transform(images)[0].tensors).values())
    for head, spread in ((model.head.classification_head, 1.2), (model.head.regression_head, 0.7)):
        for block in head.module_list:
            last = block[1]
            _widen(last, _outputs_of(last, lambda: head(features)), spread)
    return model


def _small_rcnn(**settings):
    features = _small_backbone(0.15).features
    stages = (13, 16)
    backbone = backbone_utils.BackboneWithFPN(
        features, {str(stage): str(i) for i, stage in enumerate(stages)}, [features[s].out_channels for s in stages], 16,
        LastLevelMaxPool(), torch.nn.BatchNorm2d)
    anchors = AnchorGenerator(((16, 32, 64),) * 3, ((0.5, 1.0, 2.0),) * 3)
    return faster_rcnn.FasterRCNN(
        backbone, None, min_size=SMALL, max_size=2 * SMALL, rpn_anchor_generator=anchors, rpn_pre_nms_top_n_test=60,
        rpn_post_nms_top_n_test=40, box_head=faster_rcnn.TwoMLPHead(16 * 7 ** 2, 32),
        box_predictor=faster_rcnn.FastRCNNPredictor(32, SMALL_CLASSES), **settings)


def fasterrcnn_mobilenet_v3_large_320_fpn(small):
    settings = {"box_score_thresh": 0.35}
    model = _small_rcnn(**settings) if small else torchvision.models.detection.fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, **settings)
    images = _images(SMALL if small else SIZE)
    _normalise(model.eval(), model.backbone, _prepared(model, images))
    for layer, spread in ((model.rpn.head.cls_logits, 1.5), (model.rpn.head.bbox_pred, 0.4),
                          (model.roi_heads.box_predictor.cls_score, 1.7), (model.roi_heads.box_predictor.bbox_pred, 1.0)):
        _widen(layer, _outputs_of(layer, lambda: model(images)), spread)
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


def _round(path):
    """Weights with few bits, which pack well: a small model is a file in the repository."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            fraction, exponent = np.frexp(onnx.numpy_helper.to_array(tensor))
            rounded = np.ldexp(np.round(fraction * 16) / 16, exponent).astype(np.float32)
            tensor.CopyFrom(onnx.numpy_helper.from_array(rounded, tensor.name))
    for node in model.graph.node:
        node.doc_string = ""
        del node.metadata_props[:]
    onnx.save(model, path)


def export(name, path, seed=0, dynamic=False, small=False):
    torch.manual_seed(seed)
    torch.set_grad_enabled(False)
    model = OneImage(DETECTORS[name](small)).eval()
    axes = {"boxes": {0: "found"}, "labels": {0: "found"}, "scores": {0: "found"}}
    if dynamic:
        axes["image"] = {1: "height", 2: "width"}
    torch.onnx.export(model, (_images(SMALL if small else SIZE)[0],), path, dynamo=False, dynamic_axes=axes,
                      opset_version=OPSET, input_names=["image"], output_names=["boxes", "labels", "scores"])
    if small:
        _round(path)


def main():
    parser = argparse.ArgumentParser(description="Export torchvision's mobile detectors with random weights.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" or ".join(DETECTORS))
    parser.add_argument("-o", "--output", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "out"),
                        metavar="DIR", help="where the files go (default: out/ beside this file)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the weights (default 0)")
    parser.add_argument("--small", action="store_true", help="few channels and classes, images of 128 x 128")
    parser.add_argument("--dynamic", action="store_true", help="an image of any height and width")
    options = parser.parse_args()
    if unknown := [n for n in options.names if n not in DETECTORS]:
        parser.error(f"no detector is called {', '.join(unknown)}; there are {' and '.join(DETECTORS)}")
    os.makedirs(options.output, exist_ok=True)
    for name in options.names or DETECTORS:
        path = os.path.join(options.output, f"{name}_dynamic.onnx" if options.dynamic else f"{name}.onnx")
        export(name, path, options.seed, options.dynamic, options.small)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
