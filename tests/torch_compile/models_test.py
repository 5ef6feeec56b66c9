"""Models of torchvision, transformers, timm and diffusers, small and with random weights, through torch.compile(backend=collage): right, and in as
few parts as PyTorch makes graphs.

    build/torch-env/bin/python tests/torch_compile/models_test.py [NAME…]
"""

import os
import sys
import tempfile
import time
import warnings

import torch_package  # noqa: F401, puts the built package on the path
from told import Told

import torch

from collage.torch_backend import compile_fx

MODELS = {}


def image(*extents):
    return lambda: (torch.randn(1, 3, *extents),)


def tokens(length, count=96):
    return lambda: (torch.randint(1, count, (1, length)),)


def add(name, make, inputs, graphs=1):
    """`graphs`: that PyTorch itself makes of it."""
    MODELS[name] = (make, inputs, graphs)


def torchvision_models():
    import torchvision

    for name in ("resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2", "vgg11_bn", "alexnet", "squeezenet1_1", "densenet121", "mobilenet_v2",
                 "mobilenet_v3_small", "mnasnet0_5", "shufflenet_v2_x0_5", "efficientnet_b0", "regnet_y_400mf", "googlenet",
                 "convnext_tiny"):
        extra = {"init_weights": False} if name == "googlenet" else {}
        add(name, lambda name=name, extra=extra: torchvision.models.get_model(name, weights=None, **extra), image(64, 64))
    add("inception_v3", lambda: torchvision.models.inception_v3(weights=None, init_weights=False), image(96, 96))
    add("vit_b_16", lambda: torchvision.models.VisionTransformer(32, 16, 2, 2, 64, 128), image(32, 32))
    add("swin_t", lambda: torchvision.models.swin_transformer.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4]), image(32, 32))
    add("deeplabv3", lambda: torchvision.models.segmentation.deeplabv3_mobilenet_v3_large(weights=None, weights_backbone=None), image(64, 64))
    add("fcn", lambda: torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None), image(64, 64))


def transformers_models():
    import transformers as tf

    small = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 96,
             "max_position_embeddings": 64}
    decoder = small | {"num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    for name, config, model in (("bert", tf.BertConfig, tf.BertModel), ("roberta", tf.RobertaConfig, tf.RobertaModel),
                                ("electra", tf.ElectraConfig, tf.ElectraModel), ("albert", tf.AlbertConfig, tf.AlbertModel),
                                ("xlm_roberta", tf.XLMRobertaConfig, tf.XLMRobertaModel)):
        extra = {"embedding_size": 64} if name in ("electra", "albert") else {}
        add(name, lambda config=config, model=model, extra=extra: model(config(**small, **extra)), tokens(17))
    add("distilbert", lambda: tf.DistilBertModel(tf.DistilBertConfig(dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=96)), tokens(17))
    add("gpt2", lambda: tf.GPT2LMHeadModel(tf.GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=96)), tokens(17))
    for name, config, model in (("llama", tf.LlamaConfig, tf.LlamaForCausalLM), ("mistral", tf.MistralConfig, tf.MistralForCausalLM),
                                ("qwen2", tf.Qwen2Config, tf.Qwen2ForCausalLM), ("phi3", tf.Phi3Config, tf.Phi3ForCausalLM)):
        add(name, lambda config=config, model=model: model(config(**decoder)), tokens(17))
    add("t5_encoder", lambda: tf.T5EncoderModel(tf.T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=96)), tokens(17))
    add("bart", lambda: tf.BartModel(tf.BartConfig(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                                                   encoder_ffn_dim=128, decoder_ffn_dim=128, vocab_size=96, max_position_embeddings=64)), tokens(17))
    add("vit", lambda: tf.ViTModel(tf.ViTConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, image_size=32,
                                                patch_size=8)), image(32, 32))
    add("swin", lambda: tf.SwinModel(tf.SwinConfig(image_size=32, patch_size=4, embed_dim=24, depths=[2, 2], num_heads=[2, 4], window_size=4)),
        image(32, 32))
    add("clip_vision", lambda: tf.CLIPVisionModel(tf.CLIPVisionConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                                                      intermediate_size=128, image_size=32, patch_size=8)), image(32, 32))
    add("wav2vec2", lambda: tf.Wav2Vec2Model(tf.Wav2Vec2Config(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                                                               conv_dim=[32] * 7, num_conv_pos_embeddings=16)), lambda: (torch.randn(1, 4000),))
    add("whisper_encoder", lambda: tf.models.whisper.modeling_whisper.WhisperEncoder(tf.WhisperConfig(
        d_model=64, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=128, num_mel_bins=20, max_source_positions=50)),
        lambda: (torch.randn(1, 20, 100),))


def other_models():
    import timm

    for name, extents in (("resnet26d", 64), ("mobilenetv4_conv_small", 64), ("ghostnet_100", 64), ("convnextv2_atto", 64), ("vit_tiny_patch16_224", 224)):
        add("timm." + name, lambda name=name: timm.create_model(name, pretrained=False), image(extents, extents))
    import diffusers

    add("diffusers.unet", lambda: diffusers.UNet2DModel(sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
                                                        down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                                        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8, norm_num_groups=8),
        lambda: (torch.randn(1, 3, 16, 16), torch.tensor(3)))


def generated(make, inputs, **options):
    """Whether greedy generation gives the same tokens compiled and not."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model, given = make().eval(), inputs()
    options |= {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    with torch.no_grad():
        wanted = model.generate(*given, **options)
        model.forward = torch.compile(model.forward, backend=compile_fx)
        return torch.equal(model.generate(*given, **options), wanted)


def check_generation():
    """With a cache that grows, one of a fixed size, and an encoder before the decoder."""
    import transformers as tf

    llama = lambda: tf.LlamaForCausalLM(tf.LlamaConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
                                                       intermediate_size=128, vocab_size=96, max_position_embeddings=64, bos_token_id=1, eos_token_id=2))
    t5 = lambda: tf.T5ForConditionalGeneration(tf.T5Config(d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, vocab_size=96,
                                                           decoder_start_token_id=0, eos_token_id=1))
    ways = {"llama, a cache that grows": (llama, {}), "llama, a static cache": (llama, {"cache_implementation": "static"}),
            "t5": (t5, {})}
    results = []
    for name, (make, options) in ways.items():
        begin = time.perf_counter()
        results.append(generated(make, tokens(7), **options))
        print(f"{'passed' if results[-1] else 'FAILED'} generate, {name:28} {time.perf_counter() - begin:6.1f} s", flush=True)
    return results


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return [] if not hasattr(value, "__dict__") else tensors({k: v for k, v in vars(value).items() if isinstance(v, (torch.Tensor, list, tuple))})


def settle(model, given):
    """Statistics of batch norms as training leaves them: without, values of deep models with random weights grow beyond all bounds."""
    norms = [module for module in model.modules() if isinstance(module, torch.nn.modules.batchnorm._BatchNorm)]
    if norms:
        for norm in norms:
            norm.momentum = None
            norm.train()
        model(torch.randn(4, *given[0].shape[1:]))
        model.eval()


def check(name, told):
    make, inputs, graphs = MODELS[name]
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    told.lines.clear()
    model, given = make().eval(), inputs()
    with torch.no_grad():
        settle(model, given)
        wanted = tensors(model(*given))
        begin = time.perf_counter()
        got = tensors(torch.compile(model, backend=compile_fx, options={"targets": "native", "effort": "fast"})(*given))
        took = time.perf_counter() - begin
    wrong = "" if len(got) == len(wanted) else f"{len(got)} results, not {len(wanted)}"
    for a, b in zip(got, wanted):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            wrong = wrong or f"{a.dtype} {tuple(a.shape)} {a.stride()}, not {b.dtype} {tuple(b.shape)} {b.stride()}"
        elif not (a - b).abs().max() <= 2e-4 * max(1e-3, b.abs().max()):
            wrong = wrong or f"differs by {(a - b).abs().max():.3g} of {b.abs().max():.3g}"
    made = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    if made > graphs:
        wrong = wrong or f"{made} graphs"
    parts = sum(int(line.split()[0]) if " parts in Collage" in line else 1 for line in told.lines if "in Collage" in line)
    if parts > made or any("runs in PyTorch" in line for line in told.lines):
        wrong = wrong or f"{parts} parts of {made} graphs"
    print(f"{'FAILED' if wrong else 'passed'} {name:24} {took:6.1f} s  {wrong}  {'; '.join(line for line in told.lines if not line.startswith('all'))[:300]}",
          flush=True)
    return not wrong


def main(names):
    os.environ.setdefault("COLLAGE_CACHE", tempfile.mkdtemp(prefix="collage-models-"))
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    torchvision_models()
    transformers_models()
    other_models()
    told = Told()
    passed = [check(name, told) for name in names or MODELS]
    if not names:
        passed += check_generation()
    print(f"{sum(passed)} passed, {len(passed) - sum(passed)} failed")
    return not all(passed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
