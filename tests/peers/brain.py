#!/usr/bin/env python3
"""MONAI's side of brain.sh: learn the brain mask on one half of a head, predict the other half, score it.

usage: brain.py --train IMAGE LABEL --held-out IMAGE LABEL --steps N [--network same|small] [--precision bf16|fp32]

same: network, patch and augmentation of examples/brain.ini; small: four levels with batch norm on 4 patches of
64^3. Prints the Dice and the seconds since the process started.
"""
import time
begin = time.time()
import argparse

import nibabel
import numpy
import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss
from monai.networks.nets import UNet
from monai.transforms import (Compose, KeepLargestConnectedComponent, NormalizeIntensityd, RandCropByPosNegLabeld,
                              RandFlipd, RandGaussianNoised, RandScaleIntensityd, RandShiftIntensityd)

parser = argparse.ArgumentParser()
parser.add_argument("--train", nargs=2, required=True)
parser.add_argument("--held-out", nargs=2, required=True)
parser.add_argument("--steps", type=int, required=True)
parser.add_argument("--network", choices=["same", "small"], default="same")
parser.add_argument("--precision", choices=["bf16", "fp32"], default="bf16")
options = parser.parse_args()

torch.manual_seed(0)
same = options.network == "same"
patch, batch = ((80, 112, 112), 1) if same else ((64, 64, 64), 4)
keys = ["image", "label"]
normalize = NormalizeIntensityd("image", nonzero=True)
augment = Compose([RandCropByPosNegLabeld(keys, "label", patch, 1, 1, batch)]
                  + [RandFlipd(keys, 0.5, axis) for axis in range(3)]
                  + [RandScaleIntensityd("image", 0.3, prob=0.5), RandShiftIntensityd("image", 0.3, prob=0.5),
                     RandGaussianNoised("image", prob=0.3, std=0.2)])


def read(files):
    image, label = (nibabel.load(f).get_fdata(dtype=numpy.float32)[None] for f in files)
    return normalize({"image": torch.from_numpy(image), "label": torch.from_numpy(label)})


last = torch.channels_last_3d
channels = (16, 32, 64, 128, 256) if same else (16, 32, 64, 128)
network = UNet(3, 1, 2, channels, (2,) * (len(channels) - 1), num_res_units=2, norm="instance" if same else "batch")
network = network.to(memory_format=last)
half = {"device_type": "cpu", "dtype": torch.bfloat16, "enabled": options.precision == "bf16"}
loss = DiceCELoss(softmax=True, to_onehot_y=True)
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
case = read(options.train)
for _ in range(options.steps):
    samples = augment(case)
    x = torch.stack([torch.as_tensor(s["image"]) for s in samples]).contiguous(memory_format=last)
    y = torch.stack([torch.as_tensor(s["label"]) for s in samples])
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(**half):
        logits = network(x)
    loss(logits.float(), y).backward()
    optimizer.step()
    schedule.step()

network.eval()
case = read(options.held_out)
with torch.no_grad(), torch.autocast(**half):
    logits = sliding_window_inference(torch.as_tensor(case["image"])[None], patch if same else (96,) * 3, 2, network,
                                      overlap=0.25, mode="gaussian")
mask = KeepLargestConnectedComponent()(logits.float().argmax(1))[0].numpy() > 0
truth = numpy.asarray(case["label"])[0] > 0
print("%.4f %.1f" % (2 * (mask & truth).sum() / (mask.sum() + truth.sum()), time.time() - begin))
