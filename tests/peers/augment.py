#!/usr/bin/env python3
"""nnU-Net's and MONAI's random transforms on patches of the volumes that pons gets.

usage: augment.py FOLDER make            writes two CT of 256^3 (int16, gzip) with labels 0, 1 and 2, and dataset.json
       augment.py FOLDER KIND [COUNT]    processor milliseconds a patch, mean of COUNT patches, one thread

KIND    extent   steps of the peer
nnunet  128^3    nnU-Net's training transforms on a patch of 205^3, as its trainer builds them for 3D
profile 96^3     MONAI: a crop, and the steps of [augment] profile = standard at their probabilities
flips   96^3     MONAI: a crop, RandAffine (0.2), three RandFlip (0.5) and RandGaussianNoise (0.15)

A patch of nnU-Net is cut before its time begins; MONAI's crop is part of its time, as it is of pons'.
"""
import pathlib, sys, time

import numpy as np

import data

EXTENT = (256, 256, 256)
CASES = 2
ANGLE = 30 / 360 * 2 * np.pi


def write_case(folder, n):
    import nibabel as nib
    rng = np.random.default_rng(n)
    i, j, k = np.meshgrid(*[np.linspace(-1, 1, e, dtype=np.float32) for e in EXTENT], indexing="ij")
    image = np.where(i ** 2 + 1.4 * j ** 2 < 0.8, 40, -1000).astype(np.float32)
    label = np.zeros(EXTENT, np.uint8)
    for c in (1, 2):
        x = rng.uniform(-0.4, 0.4, 3)
        organ = (i - x[0]) ** 2 + (j - x[1]) ** 2 + (k - x[2]) ** 2 / 2 < rng.uniform(0.05, 0.15)
        image[organ] += 30 * c
        label[organ] = c
    image += 15 * rng.standard_normal(EXTENT, dtype=np.float32)
    for name, voxels in (("imagesTr", image.astype(np.int16)), ("labelsTr", label)):
        nib.save(nib.Nifti1Image(voxels, np.eye(4)), folder / f"{name}/case_{n}.nii.gz")


def read_cases(folder):
    import nibabel as nib, torch
    for n in range(CASES):
        image = np.asarray(nib.load(folder / f"imagesTr/case_{n}.nii.gz").dataobj, dtype=np.float32)
        label = np.asarray(nib.load(folder / f"labelsTr/case_{n}.nii.gz").dataobj)
        yield torch.from_numpy((image - image.mean()) / image.std())[None], torch.from_numpy(label.copy())[None]


def nnunet(folder, count):
    import torch
    from nnunetv2.training.data_augmentation.compute_initial_patch_size import get_patch_size
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
    turn = (-ANGLE, ANGLE)
    start = [int(e) for e in get_patch_size((128,) * 3, turn, turn, turn, (0.85, 1.25))]
    run = nnUNetTrainer.get_training_transforms((128,) * 3, turn, None, (0, 1, 2), False, use_mask_for_norm=[False],
                                                foreground_labels=[1, 2])
    cases, rng, seconds = list(read_cases(folder)), np.random.default_rng(1), 0
    for n in range(-3, count):  # the first ones warm up
        image, label = cases[n % CASES]
        at = [int(rng.integers(0, EXTENT[a] - start[a] + 1)) for a in range(3)]
        box = (slice(None), *[slice(at[a], at[a] + start[a]) for a in range(3)])
        pair = {"image": image[box].clone(), "segmentation": label[box].to(torch.int16)}
        begin = time.process_time()
        out = run(**pair)
        seconds += (time.process_time() - begin) * (n >= 0)
        assert out["image"].shape[1:] == (128,) * 3
    return seconds / count


def monai_steps(kind):
    from monai.transforms import (Compose, RandAdjustContrastd, RandAffined, RandFlipd, RandGaussianNoised,
                                  RandGaussianSmoothd, RandScaleIntensityd, RandScaleIntensityFixedMeand,
                                  RandSimulateLowResolutiond, RandSpatialCropd)
    both, image, mode = ["image", "label"], ["image"], ("bilinear", "nearest")
    crop = RandSpatialCropd(both, (96,) * 3, random_size=False)
    if kind == "flips":
        return Compose([crop, RandAffined(both, prob=0.2, rotate_range=(ANGLE,) * 3, scale_range=(0.3,) * 3, mode=mode,
                                          padding_mode="zeros"),
                        *[RandFlipd(both, 0.5, axis) for axis in range(3)],
                        RandGaussianNoised(image, prob=0.15, std=0.1)])
    sigma = (0.5, 1.0)
    return Compose([crop,  # one interpolation with the probability that either of pons' two steps is drawn
                    RandAffined(both, prob=1 - 0.7 * 0.7, rotate_range=(ANGLE,) * 3, scale_range=((-0.3, 0.4),) * 3,
                                mode=mode, padding_mode="zeros"),
                    RandGaussianNoised(image, prob=0.15, std=0.1),
                    RandGaussianSmoothd(image, sigma, sigma, sigma, prob=0.15),
                    RandScaleIntensityd(image, 0.25, prob=0.15),
                    RandScaleIntensityFixedMeand(image, prob=0.15, factors=0.25, preserve_range=True),
                    RandSimulateLowResolutiond(image, prob=0.15, zoom_range=(0.5, 1.0)),
                    RandAdjustContrastd(image, prob=0.2, gamma=(0.7, 1.5), retain_stats=True)])


def monai(folder, kind, count):
    from monai.data import MetaTensor
    run, seconds = monai_steps(kind), 0
    run.set_random_state(1)
    cases = [{"image": MetaTensor(image), "label": MetaTensor(label)} for image, label in read_cases(folder)]
    for n in range(-3, count):
        begin = time.process_time()
        out = run(dict(cases[n % CASES]))
        seconds += (time.process_time() - begin) * (n >= 0)
        assert out["image"].shape[1:] == (96,) * 3
    return seconds / count


if __name__ == "__main__":
    place, word = pathlib.Path(sys.argv[1]), sys.argv[2]
    if word == "make":
        data.make(place, CASES, ["a", "b"], write_case)
    else:
        import torch
        torch.set_num_threads(1)
        amount = int(sys.argv[3]) if len(sys.argv) > 3 else 40
        each = nnunet(place, amount) if word == "nnunet" else monai(place, word, amount)
        print(f"figures {1000 * each:.3f}")
