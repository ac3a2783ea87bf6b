"""MONAI's pathology chain on one thread: milliseconds of a processor for each patch of 224 x 224.

    slides.py SLIDE LIST tensor|pil

OpenSlide reads a region of 768 x 768 for 9 patches. ColorJitter takes a tensor, as in MONAI's example, or a picture
of PIL.
"""
import csv
import ctypes
import sys
import time

import monai.transforms as mt
import numpy as np
import torch
import torchvision
from PIL import Image

torch.set_num_threads(1)
openslide = ctypes.CDLL("libopenslide.so.0")
openslide.openslide_open.restype = ctypes.c_void_p
openslide.openslide_open.argtypes = [ctypes.c_char_p]
openslide.openslide_read_region.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
                                            ctypes.c_int32, ctypes.c_int64, ctypes.c_int64]
slide = openslide.openslide_open(sys.argv[1].encode())
jitter = dict(brightness=64 / 255, contrast=0.75, saturation=0.25, hue=0.04)
on_pil = torchvision.transforms.ColorJitter(**jitter)
on_tensor = mt.Compose([mt.ToTensord(keys="image"), mt.TorchVisiond(keys="image", name="ColorJitter", **jitter),
                        mt.ToNumpyd(keys="image")])
split = mt.GridSplitd(keys=("image",), grid=(3, 3), size={"image": 224})
rest = mt.Compose([
    mt.RandFlipd(keys="image", prob=0.5, spatial_axis=-1), mt.RandRotate90d(keys="image", prob=0.5),
    mt.CastToTyped(keys="image", dtype=np.float32), mt.RandZoomd(keys="image", prob=0.5, min_zoom=0.9, max_zoom=1.1),
    mt.ScaleIntensityRanged(keys="image", a_min=0.0, a_max=255.0, b_min=-1.0, b_max=1.0), mt.ToTensord(keys="image")])


def read(x, y, extent):
    """The region around a position, [3, extent, extent]."""
    pixels = np.empty((extent, extent, 4), np.uint8)
    openslide.openslide_read_region(slide, pixels.ctypes.data, x - extent // 2, y - extent // 2, 0, extent, extent)
    return np.ascontiguousarray(np.moveaxis(pixels[..., 2::-1], -1, 0))


def jitter_pil(patch):
    picture = Image.fromarray(np.ascontiguousarray(np.moveaxis(np.asarray(patch["image"]), 0, -1)))
    return {"image": np.moveaxis(np.asarray(on_pil(picture)), -1, 0)}


change = on_tensor if sys.argv[3] == "tensor" else jitter_pil
seconds = []
with open(sys.argv[2], encoding="ascii") as rows:
    for row in list(csv.reader(rows))[:8]:
        begin = time.process_time()
        patches = split({"image": read(int(row[1]), int(row[2]), 768)})
        for patch in patches:
            rest(change(patch))
        seconds.append((time.process_time() - begin) / len(patches))
print("%s: %.2f ms" % (sys.argv[3], 1e3 * sorted(seconds)[len(seconds) // 2]))
