#!/usr/bin/env python3
"""Labels of 'pons predict' beside those of nnU-Net's own predictor, as it is and with float32 in place of its float16.

usage: nnunet_labels.py PONS [FOLDER]     needs: pip install nnunetv2 nibabel; FOLDER: as nnunet_predict.py makes it

nnU-Net adds windows, weights and folds in float16 and rounds after each. A second run of the same code has float32
there, and takes the network's outputs of the first. A line for each case: the voxels, those where pons differs from the
run as it is, those of them where the float32 run has the label of pons, so float16 explains the difference, and those
where pons differs from the float32 run with their largest margin: of the two largest logits, or of a region's logit and
0, over the largest logit. The status is 1 where a margin is above 1e-5. Without FOLDER the models are those of
tests/golden/nnunet; with it also its models on its scan 'small'.
"""
import contextlib
import io
import os
import pathlib
import subprocess
import sys
import tempfile

import nibabel
import numpy as np
import torch
from nnunetv2.inference import predict_from_raw_data
from nnunetv2.inference.sliding_window_prediction import compute_gaussian

golden = pathlib.Path(__file__).resolve().parents[1] / "golden/nnunet"
limit = 1e-5


class Float32:
    """The module torch, whose half is float32."""
    half = torch.float32

    def __getattr__(self, name):
        return getattr(torch, name)


@contextlib.contextmanager
def float32_sums():
    kept = predict_from_raw_data.torch, predict_from_raw_data.compute_gaussian
    predict_from_raw_data.torch = Float32()
    predict_from_raw_data.compute_gaussian = lambda *a, **k: compute_gaussian(*a, dtype=torch.float32, **k)
    predict_from_raw_data.compute_gaussian.cache_clear = compute_gaussian.cache_clear
    try:
        yield
    finally:
        predict_from_raw_data.torch, predict_from_raw_data.compute_gaussian = kept


def repeated(predict):
    """The function and, in its place, one that gives the outputs of its calls again, in their order."""
    outputs = []

    def first(x):
        y = predict(x)
        outputs.append(y.clone())
        return y
    return first, lambda x: outputs.pop(0).clone()


def run_peer(model, images, folds, mirror, previous, to):
    """Labels of the run as it is and of the one with float32, and whether heads are regions."""
    with contextlib.redirect_stdout(io.StringIO()):
        p = predict_from_raw_data.nnUNetPredictor(use_mirroring=mirror, perform_everything_on_device=False,
                                                  device=torch.device("cpu"), allow_tqdm=False)
        p.initialize_from_trained_model_folder(str(model), folds, "checkpoint_final.pth")
        labels = []
        for name, sums, predict in zip(("float16", "float32"), (contextlib.nullcontext, float32_sums),
                                       repeated(p._internal_maybe_mirror_and_predict)):
            p._internal_maybe_mirror_and_predict = predict
            (to / name).mkdir(parents=True)
            with sums():
                p.predict_from_files_sequential([[str(i) for i in images]], str(to / name),
                                                folder_with_segs_from_prev_stage=previous and str(previous))
            labels.append(np.asarray(nibabel.load(next((to / name).glob("*.nii.gz"))).dataobj))
    return (*labels, p.label_manager.has_regions)


def run_pons(program, model, images, folds, mirror, previous, to):
    """Labels and logits."""
    words = [program, "predict", "-q", model, ",".join(map(str, images)), "-o", to / "case.nii.gz", "--logits",
             "--folds", ",".join(map(str, folds)), "--no-postprocess"]
    words += [] if mirror else ["--no-mirror"]
    words += ["--previous", previous] if previous else []
    subprocess.run(words, check=True)
    return [np.asarray(nibabel.load(to / f"case{end}.nii.gz").dataobj) for end in ("", "_logits")]


def largest_margin(logits, where, regions):
    x = np.sort(logits.reshape(*where.shape, -1)[where], axis=-1)
    margin = np.abs(x).min(-1) if regions else x[:, -1] - x[:, -2]
    return margin.max(initial=0) / np.abs(logits).max()


def compare(program, name, model, images, folds=(0,), mirror=False, previous=None):
    with tempfile.TemporaryDirectory() as place:
        to = pathlib.Path(place)
        as_is, float32, regions = run_peer(model, images, folds, mirror, previous, to)
        ours, logits = run_pons(program, model, images, folds, mirror, previous, to)
    differ, other = ours != as_is, ours != float32
    explained = int((differ & ~other).sum())
    margin = largest_margin(logits, other, regions)
    print(f"{name}: {ours.size} voxels, {differ.sum()} differ ({100 * (1 - differ.mean()):.3f} % equal), float16 "
          f"explains {explained}; {other.sum()} differ from float32, margin {margin:.1e}", flush=True)
    return margin <= limit


def of_golden(program):
    good = []
    for name, channels in ("plain", 1), ("residual", 2):
        for n in range(2):
            images = [golden / f"models/images/{name}_{n}_{c:04d}.nii.gz" for c in range(channels)]
            for folds in ((0,), (0, 1)):
                for mirror in (False, True):
                    said = f"{name}_{n}, {len(folds)} fold{'s'[:len(folds) - 1]}{', mirrored' if mirror else ''}"
                    good.append(compare(program, said, golden / "models" / name, images, folds, mirror))
    for name in ("two", "sep"):
        place = golden / "models_more" / name
        good.append(compare(program, name, place / "model", sorted((place / "images").iterdir())))
    place, trainer = golden / "cascade", "nnUNetTrainer__nnUNetPlans__"
    images = sorted((place / "images").iterdir())
    good.append(compare(program, "lowres", place / f"{trainer}3d_lowres", images, mirror=True))
    with tempfile.TemporaryDirectory() as previous:
        os.symlink(place / "lowres.nii.gz", pathlib.Path(previous) / "case.nii.gz")
        good.append(compare(program, "cascade", place / f"{trainer}3d_cascade_fullres", images, mirror=True,
                            previous=pathlib.Path(previous)))
    return good


def of_scans(program, folder):
    return [compare(program, name, next((folder / name).glob("*fullres")), [folder / "small/scan_0000.nii.gz"])
            for name in ("model_thin", "model")]


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit("usage: nnunet_labels.py PONS [FOLDER]")
    good = of_golden(sys.argv[1])
    if len(sys.argv) > 2:
        good += of_scans(sys.argv[1], pathlib.Path(sys.argv[2]))
    sys.exit(0 if all(good) else 1)
