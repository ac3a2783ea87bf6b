"""Two further trained folders with nnunetv2's own predictions: a 2D network with transposed axes, and a 3D one whose slices are
resampled apart, with two normalisations and a label 'ignore'.

    PYTHONPATH=FOLDER_OF_make_nnunet python models_more.py OUT

make_nnunet.py wrote the folder 'models' beside this file; its functions make the scans, plans and checkpoints.
"""
import pathlib
import shutil
import sys

import numpy as np

import make_nnunet as g

out = pathlib.Path(sys.argv[1])


def make(name, plans, labels, channels, kind, border, shape, spacing, axes, direction=None):
    dataset = dict(channel_names=channels, labels=labels, numTraining=5, file_ending=".nii.gz")
    base, folder = g.train_folder(plans, dataset, 7, (0,), axes), out / name
    (folder / "model/fold_0").mkdir(parents=True)
    (folder / "images").mkdir()
    for f in ("plans.json", "dataset.json", "fold_0/checkpoint_final.pth"):
        shutil.copy(base / f, folder / "model" / f)
    images, _ = g.scan(np.random.default_rng(3), shape, kind, border, len(channels))
    files = [folder / f"images/case_{c:04d}.nii.gz" for c in range(len(images))]
    for f, image in zip(files, images):
        g.write(f, image, spacing, direction)
    for mirror, to in ((False, "plain"), (True, "mirrored")):
        p = g.quiet_predictor(folder / "model", (0,), mirror)
        with g.quiet():
            p.predict_from_files_sequential([[str(f) for f in files]], str(folder / to), save_probabilities=False)
        shutil.copy(folder / to / "case.nii.gz", folder / f"{to}.nii.gz")
        shutil.rmtree(folder / to)


two = g.tiny_plans("Dataset901_Two", (4.0, 1.0, 0.9), [32, 28], ["CTNormalization"], [False], [g.CT], (1, 0, 2),
                   arch=g.arch("PlainConvUNet", [4, 8, 12], [[3, 3]] * 3, [[1, 1], [2, 2], [2, 1]], [2] * 3, [2] * 2, dim=2))
two["configurations"]["3d_fullres"]["spacing"] = [1.0, 0.9]  # two extents make a 2D configuration, whatever its name
make("two", two, {"background": 0, "a": 1, "b": 2}, {"0": "CT"}, "ct", 0, (37, 9, 41), (1.1, 4.0, 0.8), (0, 1), g.LPI)
sep = g.tiny_plans("Dataset902_Sep", (4.0, 1.0, 1.0), [8, 20, 20], ["CTNormalization", "ZScoreNormalization"], [False, True],
                   [g.CT, g.CT], (2, 1, 0),
                   arch=g.arch("PlainConvUNet", [4, 8, 12], [[1, 3, 3], [3, 3, 3], [3, 3, 3]], [[1, 1, 1], [1, 2, 2], [2, 2, 2]],
                               [2] * 3, [2] * 2))
make("sep", sep, {"background": 0, "a": 1, "b": 2, "ignore": 3}, {"0": "CT", "1": "T1"}, "mr", 3, (30, 34, 14), (0.9, 1.1, 5.0),
     (0, 2))
