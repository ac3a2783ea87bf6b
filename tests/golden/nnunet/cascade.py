"""A cascade of two trained folders beside each other, as nnU-Net puts them, with nnunetv2's own predictions of both stages, and of
the second after post-processing.

    PYTHONPATH=FOLDER_OF_make_nnunet python cascade.py OUT

make_nnunet.py wrote the folder 'models' beside this file; its functions make the scans, plans and checkpoints.
"""
import copy
import json
import pathlib
import shutil
import sys

import numpy as np
import torch

import make_nnunet as g
from nnunetv2.imageio.simpleitk_reader_writer import SimpleITKIO
from nnunetv2.postprocessing.remove_connected_components import apply_postprocessing, remove_all_but_largest_component_from_segmentation

out = pathlib.Path(sys.argv[1]) / "cascade"
PREFIX = "nnUNetTrainer__nnUNetPlans__"


def arch(kernels, strides):
    return g.arch("PlainConvUNet", [4, 8, 12], kernels, strides, [2] * 3, [2] * 2)


cube = [[3, 3, 3]] * 3
plans = g.tiny_plans("Dataset903_Cascade", (1.2, 1.0, 1.0), [12, 16, 16], ["ZScoreNormalization"] * 2, [True, False], [g.CT, g.CT],
                     (1, 0, 2), arch=arch(cube, [[1, 1, 1], [2, 2, 2], [1, 2, 2]]))
full = plans["configurations"]["3d_fullres"]
low = copy.deepcopy(full)
low.update(data_identifier="nnUNetPlans_3d_lowres", spacing=[2.1, 1.7, 1.8], patch_size=[8, 12, 12], next_stage="3d_cascade_fullres")
plans["configurations"] |= {"3d_lowres": low, "3d_cascade_fullres": {"inherits_from": "3d_fullres", "previous_stage": "3d_lowres"}}
dataset = dict(channel_names={"0": "T1", "1": "T2"}, labels={"background": 0, "a": 1, "b": 2}, numTraining=5, file_ending=".nii.gz")


def train(name, channels, seed):
    """What training leaves, as make_nnunet.train_folder, of a configuration."""
    pre = g.TMP / "preprocessed" / plans["dataset_name"] / ("nnUNetPlans_3d_lowres" if name == "3d_lowres" else "nnUNetPlans_3d_fullres")
    pre.mkdir(parents=True, exist_ok=True)
    (pre / "x.b2nd").touch()
    torch.manual_seed(seed)
    draws = torch.Generator().manual_seed(seed + 200)
    with g.quiet():
        t = g.nnUNetTrainer(dict(json.loads(json.dumps(plans)), continue_training=False), name, 0, dataset, torch.device("cpu"))
        t.initialize()
        t.configure_rotation_dummyDA_mirroring_and_inital_patch_size()
    t.inference_allowed_mirroring_axes = (0, 2)
    g.randomise(t.network, draws)
    g.balance(t.network, t.configuration_manager.patch_size, channels, np.random.default_rng(seed))
    t.logger.log("ema_fg_dice", 0.5, 0)
    t.save_checkpoint(str(pathlib.Path(t.output_folder) / "checkpoint_final.pth"))
    folder = out / (PREFIX + name)
    (folder / "fold_0").mkdir(parents=True)
    (folder / "plans.json").write_text(json.dumps(plans, indent=4))
    (folder / "dataset.json").write_text(json.dumps(dataset, indent=4))
    saved = torch.load(pathlib.Path(t.output_folder) / "checkpoint_final.pth", weights_only=False)
    saved["optimizer_state"] = None  # never read, and as large as the weights
    torch.save(saved, folder / "fold_0/checkpoint_final.pth")
    return folder


def predict(folder, files, previous, to):
    p = g.quiet_predictor(folder, (0,), True)
    to.mkdir(parents=True)
    with g.quiet():
        p.predict_from_files_sequential([[str(f) for f in files]], str(to), save_probabilities=False,
                                        folder_with_segs_from_prev_stage=previous)
    return to / "case.nii.gz"


shutil.rmtree(out, ignore_errors=True)
lowres, cascade = train("3d_lowres", 2, 21), train("3d_cascade_fullres", 4, 22)
images, _ = g.scan(np.random.default_rng(5), (26, 30, 28), "mr", 4, 2)
files = [out / f"images/case_{c:04d}.nii.gz" for c in range(2)]
for f, image in zip(files, images):
    g.write(f, image, (1.1, 0.9, 1.0), g.LPI)
temporary = g.TMP / "predicted"
first = predict(lowres, files, None, temporary / "low")
second = predict(cascade, files, str(temporary / "low"), temporary / "full")
shutil.copy(first, out / "lowres.nii.gz")
shutil.copy(second, out / "cascade.nii.gz")
functions = [remove_all_but_largest_component_from_segmentation] * 2
arguments = [{"labels_or_regions": [1, 2]}, {"labels_or_regions": 2}]
read, properties = SimpleITKIO().read_seg(str(second))
SimpleITKIO().write_seg(apply_postprocessing(read[0], functions, arguments), str(out / "processed.nii.gz"), properties)
(cascade / "crossval_results_folds_0").mkdir()
(cascade / "crossval_results_folds_0/postprocessing.json").write_text(json.dumps(
    dict(postprocessing_fns=[f.__name__ for f in functions], postprocessing_kwargs=arguments), indent=4))
for f in ("lowres", "cascade", "processed"):
    seg = SimpleITKIO().read_seg(str(out / f"{f}.nii.gz"))[0]
    print(f, np.bincount(seg.astype(int).ravel()))
