#!/usr/bin/env python3
"""Writes networks_options, swin_unetr and efficientnet, each as .json and .safetensors: MONAI's networks with options that no other case
has. The first also has the names and shapes of torchvision's ResNets of further depths.

usage: networks_options.py OUT [NAME...]        NAME: a file to write; default: all

What the fields mean: as in networks_real.json. Weights, image and target follow a formula of their names and are not
stored; of gradients and running statistics there are the norm and six elements. The image is called image, image1, ...
('image_name'): the first name with which no activation lies near its kink. Dropout is off. A ResNet has its gradient
through shortcuts of type A, where MONAI detaches them; 'depth' stands for its 'block'. Of an EfficientNet there are also
names and shapes of further models.
Needs: pip install torch torchvision monai safetensors (these: torch 2.15.0, torchvision 0.29.2, monai 1.6.1).
"""
import json, math, pathlib, sys, zlib
import numpy as np
import torch
import torch.nn.functional as F
import torchvision
from monai.losses import DiceCELoss
from monai.networks import nets
from monai.networks.nets import BasicUNet, DynUNet, SegResNet, SwinUNETR, VNet
from safetensors.numpy import save_file

torch.set_num_threads(1)


class ResNet(nets.ResNet):
    def _downsample_basic_block(self, x, planes, stride, spatial_dims=3):
        x = x[(..., *(slice(None, None, stride),) * spatial_dims)]
        return F.pad(x, (0, 0) * spatial_dims + (0, planes - x.shape[1]))


class EfficientNetBN(nets.EfficientNetBN):
    """With MONAI's arguments of the class below."""

    def __init__(self, dropout_rate, drop_connect_rate, **arguments):
        super().__init__(pretrained=False, **arguments)
        self._dropout.p = dropout_rate
        for m in self.modules():
            if isinstance(m, nets.efficientnet.MBConvBlock):
                m.drop_connect_rate = drop_connect_rate


CLASSES = {c.__name__: c for c in (BasicUNet, DynUNet, SegResNet, SwinUNETR, VNet, ResNet, EfficientNetBN)}
GROUP = ["group", dict(num_groups=2)]
SMALL = dict(kernel_size=[3] * 3, strides=[1, 2, 2], upsample_kernel_size=[2, 2], filters=[4, 6, 8])
FEATURES = dict(features=[2, 4, 4, 4, 8, 4])
TWO = dict(init_filters=4, blocks_down=[1, 1], blocks_up=[1])
STILL = dict(dropout_rate=0.0, drop_connect_rate=0.0)
BASIC = dict(block="basic", layers=[1, 1, 1, 1], block_inplanes=[4, 4, 6, 8])
DEEP = dict(block="bottleneck", layers=[1, 1, 1, 1], block_inplanes=[2, 3, 4, 4])
OFF = dict(dropout_prob_down=0.0, dropout_prob_up=[0.0, 0.0])
CASES = [
    # name, class, channels, classes, extent, arguments; a file has those of its classes
    ("vnet_2d", "VNet", 2, 3, (48, 32), OFF),
    ("vnet_2d_prelu_bias", "VNet", 4, 2, (32, 48), dict(act="prelu", bias=True) | OFF),
    ("vnet_2d_wide_relu", "VNet", 16, 2, (32, 32), dict(act="relu") | OFF),
    ("basicunet_pixelshuffle", "BasicUNet", 1, 2, (16, 32, 16), dict(upsample="pixelshuffle", act="elu") | FEATURES),
    ("basicunet_pixelshuffle_2d", "BasicUNet", 1, 2, (32, 48), dict(upsample="pixelshuffle", norm="batch") | FEATURES),
    ("basicunet_nontrainable", "BasicUNet", 2, 3, (19, 33, 18), dict(upsample="nontrainable", norm=GROUP) | FEATURES),
    ("basicunet_prelu_plain", "BasicUNet", 1, 2, (16, 16, 32), dict(act="prelu", norm=["instance", dict(affine=False)]) | FEATURES),
    ("segresnet_prelu_shuffle", "SegResNet", 1, 2, (8, 12, 10), dict(act="prelu", norm=GROUP, upsample_mode="pixelshuffle") | TWO),
    ("segresnet_elu_deconv_2d", "SegResNet", 2, 3, (20, 16), dict(act="elu", norm="batch", upsample_mode="deconv") | TWO),
    ("segresnet_shuffle_2d", "SegResNet", 2, 2, (16, 20), dict(norm=GROUP, upsample_mode="pixelshuffle") | TWO),
    ("dynunet_group_relu", "DynUNet", 1, 2, (8, 12, 16), dict(norm_name=GROUP, act_name="relu") | SMALL),
    ("dynunet_batch_prelu", "DynUNet", 2, 3, (12, 8, 8), dict(norm_name="batch", act_name="prelu", res_block=True) | SMALL),
    ("dynunet_elu_bias", "DynUNet", 1, 2, (8, 16, 8), dict(act_name="elu", trans_bias=True) | SMALL),
    ("resnet_a_2d", "ResNet", 2, 3, (49, 64), dict(shortcut_type="A", widen_factor=1.5, conv1_t_size=5, conv1_t_stride=2) | BASIC),
    ("resnet_a_deep", "ResNet", 1, 2, (20, 17, 24), dict(shortcut_type="A", conv1_t_size=[3, 5, 3], conv1_t_stride=[1, 2, 1]) | DEEP),
    ("resnet_bias_2d", "ResNet", 1, 4, (40, 48), dict(bias_downsample=True, conv1_t_size=7, conv1_t_stride=1, no_max_pool=True) | DEEP),
    ("resnet_narrow", "ResNet", 3, 5, (24, 25, 20), dict(bias_downsample=False, widen_factor=0.75, conv1_t_size=7) | BASIC),
    ("swin_unetr", "SwinUNETR", 1, 2, (64, 32, 96), dict(feature_size=12)),
    ("swin_unetr_v2_windows", "SwinUNETR", 2, 3, (64, 32, 64), dict(feature_size=12, use_v2=True, downsample="mergingv2", window_size=[5, 4, 3], mlp_ratio=2.5,
                                                                     norm_name="batch", depths=[2, 1, 3, 1], num_heads=[2, 3, 6, 4], qkv_bias=False)),
    ("swin_unetr_2d", "SwinUNETR", 1, 3, (64, 96), dict(feature_size=12, window_size=[7, 7])),
    ("swin_unetr_2d_v2", "SwinUNETR", 3, 2, (96, 64), dict(feature_size=24, use_v2=True, window_size=[4, 6], patch_norm=True, normalize=False,
                                                          downsample="mergingv2", depths=[1, 2, 2, 1])),
    ("swin_unetr_2d_group", "SwinUNETR", 1, 2, (64, 64), dict(feature_size=12, window_size=[3, 5], norm_name=GROUP, depths=[3, 2, 1, 2])),
    ("efficientnet_b0_2d", "EfficientNetBN", 3, 5, (64, 96), dict(model_name="efficientnet-b0") | STILL),
    ("efficientnet_b1_2d", "EfficientNetBN", 1, 3, (72, 51), dict(model_name="efficientnet-b1") | STILL),
    ("efficientnet_b0_3d", "EfficientNetBN", 1, 2, (64, 48, 64), dict(model_name="efficientnet-b0") | STILL),
]
COUNTS = 34, 101, 152
FILES = dict(networks_options=("BasicUNet", "DynUNet", "SegResNet", "VNet", "ResNet"), swin_unetr=("SwinUNETR",), efficientnet=("EfficientNetBN",))
ALIASES = "skip_layers.", "conv_final.1."  # second names of layers
KINKS = torch.nn.ReLU, torch.nn.LeakyReLU, torch.nn.PReLU
POOLS = torch.nn.MaxPool2d, torch.nn.MaxPool3d


def formula(name, shape):
    """u in [0, 1), a multiple of 2^-24, from the element's index and the name."""
    x = (np.arange(math.prod(shape), dtype=np.uint64) + zlib.crc32(name.encode())).astype(np.uint32)
    x ^= x >> 16
    x *= np.uint32(0x85EBCA6B)
    x ^= x >> 13
    x *= np.uint32(0xC2B2AE35)
    x ^= x >> 16
    return ((x >> 8) / 2.0**24).reshape(shape)


def weights(name, shape):
    u = formula(name, shape)
    if len(shape) > 1:
        v = math.sqrt(3 / math.prod(shape[1:])) * (2 * u - 1)
    else:
        v = 0.9 + 0.2 * u if name.endswith(("weight", "running_var")) else 0.2 * u - 0.1
    return torch.from_numpy(v.astype(np.float32))


def distance(net, state, x):
    """How near an activation comes to its kink, or the two largest of a pooling window to each other."""
    seen = []

    def window(m, i):
        v, n = i[0].detach(), i[0].ndim - 2
        v = F.pad(v, (m.padding, m.padding) * n, value=-1e30) if m.padding else v
        for axis in range(n):
            v = v.unfold(2 + axis, m.kernel_size, m.stride)
        two = v.flatten(-n).topk(2).values
        gap = (two[..., 0] - two[..., 1])[two[..., 0] != 0]
        seen.append(gap.min().item() if gap.numel() else 1.0)

    hooks = [m.register_forward_pre_hook(lambda m, i: seen.append(i[0].detach().abs().min().item()))
             for m in net.modules() if isinstance(m, KINKS)]
    hooks += [m.register_forward_pre_hook(window) for m in net.modules() if isinstance(m, POOLS)]
    with torch.no_grad():
        net.train()(x)
    net.load_state_dict(state, strict=False)
    for h in hooks:
        h.remove()
    return min(seen, default=1.0)


def through(net, x, y):
    with torch.no_grad():
        logits = net.eval()(x)
    z = net.train()(x)
    value = F.cross_entropy(z, y) if z.ndim == 2 else DiceCELoss(softmax=True, to_onehot_y=True)(z, y)
    net.zero_grad(set_to_none=True)
    value.backward()
    gradient = {k: p.grad.detach() for k, p in net.named_parameters() if p.grad is not None}
    return logits, z.detach(), value.item(), gradient, {k: v.clone() for k, v in net.state_dict().items() if "running" in k}


def seven(g):
    """The norm, then the elements floor(k (n - 1) / 5), k = 0..5."""
    g = g.double().flatten()
    return torch.stack([g.norm(), *(g[k * (g.numel() - 1) // 5] for k in range(6))]).float().numpy()


def float32(net, state, x, y, want):
    """What PyTorch's own float deviates by."""
    net = net.float()
    net.load_state_dict(state, strict=False)
    logits, _, value, gradient, _ = through(net, x.float(), y)
    largest = max(g.abs().max().item() for g in want[3].values())
    norm = max(g.norm().item() for g in want[3].values())
    return dict(logits=((logits - want[0]).abs().max() / want[0].abs().max()).item(), loss=abs(value / want[2] - 1),
                gradient=max(((gradient[k] - g).abs().max() / max(g.abs().max().item(), 0.01 * largest)).item() for k, g in want[3].items()),
                norm=max(abs(gradient[k].double().norm().item() - g.norm().item()) / max(g.norm().item(), 0.01 * norm) for k, g in want[3].items()))


def add_case(cases, arrays, name, kind, channels, classes, extent, arguments):
    classifies = kind in ("ResNet", "EfficientNetBN")
    whole = dict(spatial_dims=len(extent)) | arguments
    whole |= {"n_input_channels" if kind == "ResNet" else "in_channels": channels, "num_classes" if classifies else "out_channels": classes}
    net = CLASSES[kind](**{k: tuple(v) if k in ("norm", "norm_name") and not isinstance(v, str) else v for k, v in whole.items()}).float()
    state = {k: weights(k, tuple(v.shape)) for k, v in net.state_dict().items()
             if v.is_floating_point() and not k.startswith(ALIASES)}
    net.load_state_dict(state, strict=False)
    for m in net.modules():
        if isinstance(m, torch.nn.modules.dropout._DropoutNd):
            m.p = 0.0
    net = net.double()
    shape = (2, channels) + extent
    tried = []
    for n in range(24 if math.prod(shape) < 100000 else 4):
        image = "image" + (str(n) if n else "")
        x = torch.from_numpy((math.sqrt(3) * (2 * formula(image, shape) - 1)).astype(np.float32)).double()
        tried.append((distance(net, state, x), image, x))
        if tried[-1][0] > 4e-6:
            break
    kink, image, x = max(tried, key=lambda t: t[0])
    target = (2,) if classifies else (2, 1) + extent
    y = torch.from_numpy(np.floor(formula("target", target) * classes)).long()
    want = through(net, x, y)
    step = 2 if want[0].numel() > 6000 else 1
    kept = (..., *(slice(None, None, step),) * (want[0].ndim - 2))
    arrays |= {f"{name}/eval/logits": want[0][kept].float().numpy(), f"{name}/train/logits": want[1][kept].float().numpy()}
    arrays |= {f"{name}/gradient/{k}": seven(v) for k, v in want[3].items()}
    arrays |= {f"{name}/after/{k}": seven(v) for k, v in want[4].items()}
    if kind == "ResNet":
        whole["depth"] = dict(basic=18, bottleneck=50)[whole.pop("block")]
    cases.append(dict(name=name, network=kind, arguments=whole, extent=extent, image=shape, image_name=image, target="class" if classifies else "labels",
                      target_shape=target, classes=classes, loss="cross_entropy" if classifies else "dice_ce", value=want[2], heads=1, stored=step, parameters=sum(p.numel() for p in net.parameters()),
                      state={k: v.shape for k, v in state.items()}, kink=kink, float32=float32(net, state, x, y, want)))
    print(name, cases[-1]["parameters"], image, f"{kink:.1e}", {k: f"{v:.1e}" for k, v in cases[-1]["float32"].items()}, flush=True)


def add_counts(cases):
    for depth in COUNTS:
        net = getattr(torchvision.models, f"resnet{depth}")()
        cases.append(dict(name=f"resnet{depth}_2d", network="ResNet", extent=(64, 64), parameters=sum(p.numel() for p in net.parameters()),
                          state={k: v.shape for k, v in net.state_dict().items() if v.is_floating_point()}))


def add_efficientnets(cases):
    for n in range(2, 8):
        net = nets.EfficientNetBN(f"efficientnet-b{n}", pretrained=False, spatial_dims=3 if n == 2 else 2)
        cases.append(dict(name=f"efficientnet_b{n}", network="EfficientNetBN", extent=(64,) * (3 if n == 2 else 2),
                          parameters=sum(p.numel() for p in net.parameters()),
                          state={k: v.shape for k, v in net.state_dict().items() if v.is_floating_point()}))


def write(out, file):
    cases, arrays = [], {}
    for name, kind, channels, classes, extent, arguments in CASES:
        if kind in FILES[file]:
            add_case(cases, arrays, name, kind, channels, classes, extent, arguments)
    if file == "networks_options":
        add_counts(cases)
    if file == "efficientnet":
        add_efficientnets(cases)
    (out / f"{file}.json").write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n")
    save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, out / f"{file}.safetensors")


for file in sys.argv[2:] or FILES:
    write(pathlib.Path(sys.argv[1]), file)
