#!/usr/bin/env python3
"""MONAI's data path on the CPU, the work that 'pons bench --data' does on the same files.

usage: data.py DIR make            writes four cases like abdominal CT (320 x 320 x 90, int16, gzip) and dataset.json
       data.py DIR measure [N]     Mvoxel/s of reading and of reading with preprocessing, one thread; then patches of 96^3 a
                                   second from the cache, N micro-batches of 2 cases x 4 patches, as one JSON object
"""
import json, pathlib, sys, time

import numpy as np

EXTENT = (320, 320, 90)
CASES = 4


def write_case(folder, n):
    import nibabel as nib
    rng = np.random.default_rng(n)
    i, j, k = np.meshgrid(*[np.linspace(-1, 1, e, dtype=np.float32) for e in EXTENT], indexing="ij")
    centre = rng.uniform(-0.3, 0.3, 3)
    body = i ** 2 + 1.4 * j ** 2 < 0.8
    organ = (i - centre[0]) ** 2 + (j - centre[1]) ** 2 + (k - centre[2]) ** 2 / 2 < rng.uniform(0.03, 0.08)
    image = np.where(body, 40, -1000) + np.where(organ, 60, 0) + 15 * rng.standard_normal(EXTENT, dtype=np.float32)
    affine = np.diag([-0.8, -0.8, 3.0, 1.0])
    nib.save(nib.Nifti1Image(image.astype(np.int16), affine), folder / f"imagesTr/case_{n}.nii.gz")
    nib.save(nib.Nifti1Image(organ.astype(np.uint8), affine), folder / f"labelsTr/case_{n}.nii.gz")


def make(folder, count, classes, write_case):
    """A dataset of the Decathlon's layout; write_case(folder, n) writes image and label of case n."""
    for name in ("imagesTr", "labelsTr"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for n in range(count):
        write_case(folder, n)
    pairs = [{"image": f"./imagesTr/case_{n}.nii.gz", "label": f"./labelsTr/case_{n}.nii.gz"} for n in range(count)]
    labels = {str(n): name for n, name in enumerate(["background", *classes])}
    (folder / "dataset.json").write_text(json.dumps({
        "name": "ct", "modality": {"0": "CT"}, "labels": labels, "numTraining": count, "numTest": 0,
        "training": pairs, "test": []}))


def measure(folder, batches):
    import torch
    from monai.data import CacheDataset, ThreadDataLoader
    from monai.transforms import (Compose, CropForegroundd, EnsureChannelFirstd, LoadImaged, Orientationd,
                                  RandCropByPosNegLabeld, RandFlipd, RandRotate90d, RandShiftIntensityd,
                                  ScaleIntensityRanged, Spacingd)
    torch.set_num_threads(1)
    both = ["image", "label"]
    files = [{key: str(folder / f"{key}sTr/case_{n}.nii.gz") for key in both} for n in range(CASES)]
    read = [LoadImaged(both), EnsureChannelFirstd(both)]
    chain = read + [Orientationd(both, axcodes="RAS", labels=(("L", "R"), ("P", "A"), ("I", "S"))),
                    Spacingd(both, pixdim=(1.5, 1.5, 2.0), mode=("bilinear", "nearest")),
                    ScaleIntensityRanged(["image"], -57, 164, 0, 1, clip=True),
                    CropForegroundd(both, source_key="image", allow_smaller=True)]
    random = [RandCropByPosNegLabeld(both, "label", (96, 96, 96), 1, 1, 4, image_key="image"),
              *[RandFlipd(both, 0.5, axis) for axis in range(3)], RandRotate90d(both, 0.1, 3),
              RandShiftIntensityd(["image"], 0.1, prob=0.5)]
    out = {}
    million = CASES * float(np.prod(EXTENT)) / 1e6
    for f in files:
        Compose(read)(dict(f))
    for name, steps in (("read", read), ("preprocess", chain)):
        run, begin = Compose(steps), time.perf_counter()
        for f in files:
            run(dict(f))
        out[name] = million / (time.perf_counter() - begin)
    held = CacheDataset(files, Compose(chain + random), num_workers=1, copy_cache=False, progress=False)
    loader = ThreadDataLoader(held, num_workers=0, batch_size=2, shuffle=True)
    count, done, begin = 0, -1, None
    while done < batches:
        for batch in loader:
            done += 1
            if done == 0:  # the first one warms up
                begin = time.perf_counter()
            else:
                count += len(batch["image"])
    out["patches"] = count / (time.perf_counter() - begin)
    print(json.dumps({name: round(value, 2) for name, value in out.items()}))


if __name__ == "__main__":
    place = pathlib.Path(sys.argv[1])
    if sys.argv[2] == "make":
        make(place, CASES, ["organ"], write_case)
    else:
        measure(place, int(sys.argv[3]) if len(sys.argv) > 3 else 10)
