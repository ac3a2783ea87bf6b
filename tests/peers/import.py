#!/usr/bin/env python3
"""Weights of MONAI and nnU-Net through 'pons import' and 'pons predict --logits', beside their own logits.

usage: import.py PONS [FOLDER]

Each network has random weights, saved by torch.save in both formats and under other names. A MONAI network reads a
volume whose axes are those of the file; nnU-Net reads [z, y, x] in the order of a plan, with kernels of different
extents. Prints the largest difference over the largest logit, which must be at most 1e-4.
"""
import collections
import pathlib
import subprocess
import sys
import tempfile

import nibabel
import numpy
import torch
from dynamic_network_architectures.architectures.unet import PlainConvUNet, ResidualEncoderUNet
from monai.networks import nets

pons = sys.argv[1]
folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)
extent = (32, 32, 32)
limit = 1e-4

INI = """[experiment]
name = run
[data]
labels = background:0 a:1 b:2
[patch]
extent = {extent}
[model]
plugin = {plugin}
{options}
[loss]
plugin = dice
[optimizer]
plugin = adam
[train]
epochs = 1
precision = fp32
"""

MONAI = {
    "unet": (lambda: nets.UNet(3, 1, 3, (8, 16, 32), (2, 2), num_res_units=2, norm="batch"),
             "channels = 8 16 32\nstrides = 2 2\nnum_res_units = 2\nnorm = batch"),
    "segresnet": (lambda: nets.SegResNet(3, 8, 1, 3), "init_filters = 8"),
    "dynunet": (lambda: nets.DynUNet(3, 1, 3, [3, [3, 3, 1], 3], [1, 2, [2, 2, 1]], [2, [2, 2, 1]],
                                     filters=[8, 16, 32]),
                "kernel_size = 3 3,3,1 3\nstrides = 1 2 2,2,1\nupsample_kernel_size = 2 2,2,1\nfilters = 8 16 32"),
    "basicunet": (lambda: nets.BasicUNet(3, 1, 3, (8, 8, 16, 16, 32, 8)), "features = 8 8 16 16 32 8"),
    "vnet": (lambda: nets.VNet(3, 1, 3), ""),
    "attention_unet": (lambda: nets.AttentionUnet(3, 1, 3, (8, 16, 32), (2, 2)), "channels = 8 16 32\nstrides = 2 2"),
    "swin_unetr": (lambda: nets.SwinUNETR(in_channels=1, out_channels=3, feature_size=12, norm_name="batch"),
                   "feature_size = 12\nnorm_name = batch"),
}


def randomise(net):
    """Weights as after some training: norms that are not 1 and 0."""
    for module in net.modules():
        if getattr(module, "running_mean", None) is not None:
            module.running_mean.uniform_(-0.5, 0.5)
            module.running_var.uniform_(0.5, 2)
    for name, value in net.named_parameters():
        if value.dim() == 1:
            torch.nn.init.uniform_(value, 0.2, 1)
    return net.eval()


def call(*words):
    done = subprocess.run([pons, *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stderr}")


def compare(name, weights, image, expected):
    """The difference of a file of weights, read as it is and after an import."""
    config, output = folder / f"{name}.ini", folder / f"{name}.safetensors"
    worst = 0
    call("import", weights, "-o", output, "--config", config)
    for file in (output, weights):
        call("predict", file, image, "-o", folder / "out.nii.gz", "--logits", "--config", config)
        found = numpy.asarray(nibabel.load(folder / "out_logits.nii.gz").dataobj)
        worst = max(worst, float(abs(found - expected).max() / abs(expected).max()))
    print(f"{name:16} {weights.name:24} {worst:.2e}{'' if worst <= limit else '  more than 1e-4'}", flush=True)
    return worst <= limit


def write(name, plugin, options):
    text = INI.format(extent=" ".join(map(str, extent)), plugin=plugin, options=options)
    (folder / f"{name}.ini").write_text(text)


def save_all(name, state):
    torch.save(state, folder / f"{name}.pt")
    old = {"state_dict": collections.OrderedDict(("module.net." + k, v) for k, v in state.items()), "epoch": 1}
    torch.save(old, folder / f"{name}_old.pth", _use_new_zipfile_serialization=False)
    last = {k: v.to(memory_format=torch.channels_last_3d) if v.dim() == 5 else v for k, v in state.items()}
    torch.save({"model": last}, folder / f"{name}_last.pt")
    return [folder / f"{name}.pt", folder / f"{name}_old.pth", folder / f"{name}_last.pt"]


def monai(image, volume):
    good = True
    for name, (make, options) in MONAI.items():
        net = randomise(make())
        with torch.no_grad():
            expected = net(torch.from_numpy(volume)[None, None])[0].permute(1, 2, 3, 0).numpy()
        write(name, name, options)
        for weights in save_all(name, net.state_dict()):
            good &= compare(name, weights, image, expected)
    return good


def nnunet(image, volume):
    """Plan axis a is array axis F[a] of [z, y, x], which is file axis 2 - F[a]."""
    good = True
    kernels, strides = [[1, 3, 3], [3, 1, 3], [3, 3, 3]], [[1, 1, 1], [1, 2, 2], [2, 1, 2]]
    plain = dict(n_conv_per_stage=2, n_conv_per_stage_decoder=2)
    residual = dict(n_blocks_per_stage=[1, 2, 2], n_conv_per_stage_decoder=1)
    for plugin, make, extra in (("plain_unet", PlainConvUNet, plain), ("residual_unet", ResidualEncoderUNet, residual)):
        for forward in ([0, 1, 2], [1, 0, 2], [2, 0, 1]):
            net = randomise(make(1, 3, [4, 8, 16], torch.nn.Conv3d, kernels, strides, num_classes=3, conv_bias=True,
                                 norm_op=torch.nn.InstanceNorm3d, norm_op_kwargs=dict(eps=1e-5, affine=True),
                                 nonlin=torch.nn.LeakyReLU, nonlin_kwargs=dict(inplace=True), **extra))
            backward = [forward.index(i) for i in range(3)]
            with torch.no_grad():
                planned = net(torch.from_numpy(volume.T.transpose(forward).copy())[None, None])[0].numpy()
            expected = planned.transpose(0, *(1 + b for b in backward)).transpose(3, 2, 1, 0)
            in_file = [",".join(str(v[backward[2 - d]]) for d in range(3)) for v in kernels]
            steps = [",".join(str(v[backward[2 - d]]) for d in range(3)) for v in strides]
            counts = "\n".join(f"{k} = {v if isinstance(v, int) else ' '.join(map(str, v))}" for k, v in extra.items())
            name = f"{plugin}_{''.join(map(str, forward))}"
            write(name, plugin, f"features_per_stage = 4 8 16\nkernel_sizes = {' '.join(in_file)}\n"
                  f"strides = {' '.join(steps)}\n{counts}")
            plans = dict(transpose_forward=forward, transpose_backward=backward)
            torch.save({"network_weights": net.state_dict(), "init_args": {"plans": plans},
                        "trainer_name": "nnUNetTrainer", "_best_ema": numpy.float64(0.5)}, folder / f"{name}.pth")
            good &= compare(name, folder / f"{name}.pth", image, expected)
    return good


torch.manual_seed(0)
noise = torch.randn(extent).numpy()
nibabel.save(nibabel.Nifti1Image(noise, numpy.eye(4)), folder / "image.nii.gz")
sys.exit(0 if all([monai(folder / "image.nii.gz", noise), nnunet(folder / "image.nii.gz", noise)]) else 1)
