#!/usr/bin/env python3
"""Exported runs in nnU-Net, beside 'pons predict' of the run.

usage: export.py PONS [FOLDER]

Each run has a few steps of training on a phantom. nnU-Net's predictor opens the folder of 'pons export --nnunet', with
windows added in float32 in place of half precision. Prints the largest difference of logits over the largest logit, which must be at most 1e-4, and the share of
equal labels, at least 99.9 %.
"""
import functools
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.update(nnUNet_raw="/tmp", nnUNet_preprocessed="/tmp", nnUNet_results="/tmp")
import nibabel
import numpy
import torch

pons = sys.argv[1]
folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else tempfile.mkdtemp())
folder.mkdir(parents=True, exist_ok=True)
limit = 1e-4

INI = """[experiment]
name = {name}
[data]
source = {data}
validation = none
{preprocess}
[patch]
extent = {extent}
[window]
{window}
[train]
steps = 3
precision = fp32
[loss]
plugin = dice_ce
[optimizer]
plugin = sgd
lr = 1e-2
[model]
{model}
[predict]
{predict}
"""

CROP = "[preprocess.crop_foreground]\nselect = nonzero\n"
SPACING = "[preprocess.spacing]\nmm = 1.3 1 1.2\nmethod = nnunet\n"
RESIDUAL = """plugin = residual_unet
features_per_stage = 4 8 8
kernel_sizes = 3,3,1 3 3
strides = 1 2,2,1 2
n_blocks_per_stage = 1 2 1
"""
PLAIN = "plugin = plain_unet\nfeatures_per_stage = 4 8\nkernel_sizes = 3\nstrides = 1 2\n"
NNUNET = {
    "residual": ("solid", "[preprocess]\nsteps = crop_foreground normalize spacing\n" + CROP + SPACING
                 + "[preprocess.normalize]\nscheme = zscore\n", RESIDUAL, "16 16 8", "mirror = 0 2"),
    "ct": ("solid", "[preprocess]\nsteps = orient crop_foreground normalize spacing\n" + CROP + SPACING
           + "[preprocess.normalize]\nscheme = ct\nlower = 10\nupper = 700\nsubtrahend = 300\ndivisor = 120\n", PLAIN
           + "norm = batch\nact = relu\n", "16 16 8", ""),
    "flat": ("flat", "[preprocess]\nsteps = crop_foreground normalize\n" + CROP
             + "[preprocess.normalize]\nchannel_wise = yes\n",
             "plugin = plain_unet\nfeatures_per_stage = 4 8\nkernel_sizes = 3,1,3\nstrides = 1 2,1,2\n", "16 1 16",
             "mirror = 2"),
}


def call(*words):
    done = subprocess.run([pons, *map(str, words)], capture_output=True, text=True, cwd=folder)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stderr}")


def run(name, data, preprocess, model, extent, window, predict):
    text = INI.format(name=name, data=data, preprocess=preprocess, model=model, extent=extent, window=window,
                      predict=predict)
    (folder / f"{name}.ini").write_text(text)
    call("train", f"{name}.ini", "-q")


def predicted(name, image):
    call("predict", f"runs/{name}", image, "-o", folder / "out.nii.gz", "--logits")
    return [numpy.asarray(nibabel.load(folder / f"out{end}.nii.gz").dataobj) for end in ("", "_logits")]


def report(name, labels, logits, own_labels, own_logits):
    worst = float(abs(logits - own_logits).max() / abs(own_logits).max())
    equal = float((labels == own_labels).mean())
    good = worst <= limit and equal >= 0.999
    print(f"{name:20} logits {worst:.2e}  labels {100 * equal:.3f} %{'' if good else '  FAILED'}", flush=True)
    return good


# ---- nnU-Net -------------------------------------------------------------------------------------

def nnunet_logits(model, image):
    """Labels of the file, and the logits of nnU-Net on the grid of the cropped file."""
    from nnunetv2.inference.export_prediction import convert_predicted_logits_to_segmentation_with_correct_shape
    from nnunetv2.inference import predict_from_raw_data as inference, sliding_window_prediction
    from nnunetv2.inference.predict_from_raw_data import nnUNetPredictor
    predictor = nnUNetPredictor(device=torch.device("cpu"), perform_everything_on_device=False, allow_tqdm=False)
    predictor.initialize_from_trained_model_folder(str(model), (0,))
    plans, c = predictor.plans_manager, predictor.configuration_manager
    preprocessor = c.preprocessor_class(verbose=False)
    data, _, facts = preprocessor.run_case([str(image)], None, plans, c, predictor.dataset_json)
    half, torch.half = torch.half, torch.float32
    inference.compute_gaussian = functools.partial(sliding_window_prediction.compute_gaussian, dtype=torch.float32)
    logits = predictor.predict_logits_from_preprocessed_data(torch.from_numpy(data)).float()
    torch.half = half
    labels = convert_predicted_logits_to_segmentation_with_correct_shape(
        logits, plans, c, predictor.label_manager, facts, return_probabilities=False)
    old = [facts["spacing"][i] for i in plans.transpose_forward]
    now = c.spacing if len(c.spacing) == 3 else [old[0], *c.spacing]
    planned = c.resampling_fn_probabilities(logits, facts["shape_after_cropping_and_before_resampling"], now, old)
    order = [0, *(1 + b for b in plans.transpose_backward)]
    logits = numpy.asarray(planned).transpose(order)
    box = [slice(*facts["bbox_used_for_cropping"][b]) for b in plans.transpose_backward]
    rw = plans.image_reader_writer_class()
    rw.write_seg(labels, str(folder / "seg.nii.gz"), facts)
    return numpy.asarray(nibabel.load(folder / "seg.nii.gz").dataobj), logits.transpose(3, 2, 1, 0), box[::-1]


def nnunet():
    good = True
    for name, (data, preprocess, model, extent, window) in NNUNET.items():
        run(name, data, preprocess, model, extent, "mode = nnunet\noverlap = 0.5\n" + window,
            "resample = logits\nseparate_slices = auto\n")
        call("export", f"runs/{name}", "--nnunet", f"{name}_nnunet")
        image = folder / data / "imagesTr" / "phantom_001.nii.gz"
        labels, logits = predicted(name, image)
        own_labels, own_logits, box = nnunet_logits(folder / f"{name}_nnunet", image)
        good &= report(f"nnunet {name}", labels, logits[tuple(box)], own_labels, own_logits)
    return good


for name, extent in (("solid", "24,20,22"), ("flat", "24,3,22")):
    call("data", "phantom", "-o", name, "--cases", 2, "--extent", extent)
sys.exit(0 if nnunet() else 1)
