#!/usr/bin/env python3
"""torchvision's and MONAI's random transforms on the pictures that pons gets.

usage: colours.py FOLDER make            writes 8 pictures of 320 x 320 with labels 0 and 1
       colours.py FOLDER KIND [COUNT]    processor milliseconds a patch, mean of COUNT patches, one thread; KIND: pil
                                         (colours by PIL, the rest by MONAI) or tensor (torchvision)
"""
import pathlib, sys, time

import numpy as np
from PIL import Image

COUNT = 8


def make(folder):
    y, x = np.mgrid[0:320, 0:320]
    for part in ("images", "labels"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    for n in range(COUNT):
        waves = np.stack([200 + 40 * np.sin(x / 17 + n), 120 + 80 * np.cos(y / 23),
                          170 + 60 * np.sin((x + y) / 31)], -1)
        image = waves + np.random.default_rng(n).normal(0, 12, waves.shape)
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(folder / f"images/p{n}.png")
        Image.fromarray(((x // 40 + y // 40) % 2).astype(np.uint8)).save(folder / f"labels/p{n}.png")


def chain_pil(jitter):
    import monai.transforms as M
    rest = M.Compose([M.RandFlip(prob=0.5, spatial_axis=0), M.RandFlip(prob=0.5, spatial_axis=1),
                      M.RandRotate90(prob=0.5), M.RandZoom(prob=0.5, min_zoom=0.9, max_zoom=1.1),
                      M.ScaleIntensityRange(0, 255, -1, 1)])
    return lambda a: rest(np.asarray(jitter(Image.fromarray(a))).transpose(2, 0, 1).astype(np.float32))


def chain_tensor(jitter):
    import torch
    from torchvision import transforms as T
    from torchvision.transforms import functional as F

    def chain(a):
        x = jitter(torch.from_numpy(a).permute(2, 0, 1).float() / 255)
        x = F.hflip(x) if torch.rand(1) < 0.5 else x
        x = F.vflip(x) if torch.rand(1) < 0.5 else x
        x = torch.rot90(x, int(torch.randint(1, 4, (1,))), (1, 2)) if torch.rand(1) < 0.5 else x
        if torch.rand(1) < 0.5:
            zoom = float(torch.empty(1).uniform_(0.9, 1.1))
            x = F.affine(x, 0, [0, 0], zoom, [0, 0], interpolation=T.InterpolationMode.BILINEAR)
        return x * 2 - 1
    return chain


def measure(folder, kind, count):
    import torch
    from torchvision.transforms import ColorJitter
    torch.set_num_threads(1)
    images = [np.asarray(Image.open(folder / f"images/p{n}.png"))[:224, :224].copy() for n in range(COUNT)]
    chain = {"pil": chain_pil, "tensor": chain_tensor}[kind](ColorJitter(64 / 255, 0.75, 0.25, 0.04))
    for image in images:
        chain(image)
    start = time.process_time()
    for n in range(count):
        chain(images[n % COUNT])
    print("figures", 1000 * (time.process_time() - start) / count)


folder = pathlib.Path(sys.argv[1])
if sys.argv[2] == "make":
    make(folder)
else:
    measure(folder, sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 100)
