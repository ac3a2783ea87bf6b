#!/usr/bin/env python3
"""Exported runs in nnU-Net and MONAI, beside 'pons predict' of the run.

usage: export.py PONS [FOLDER]

Needs nnunetv2, MONAI, pytorch-ignite and fire. Each run has a few steps of training on a phantom. nnU-Net's predictor
opens the folder of 'pons export --nnunet', with windows added in float32 in place of half precision; MONAI's parser
makes the parts of the bundle of 'pons export --bundle'. Prints the largest difference of logits over the largest logit,
which must be at most 1e-4, and the share of equal labels, at least 99.9 %. The programs' own commands run, too.
"""
import functools
import os
import pathlib
import shutil
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


def same_labels(name, file, own, least=0.999):
    """Compare labels that a program's own command wrote."""
    equal = float((numpy.asarray(nibabel.load(file).dataobj) == own).mean())
    print(f"{name:20} labels {100 * equal:.3f} %{'' if equal >= least else '  FAILED'}", flush=True)
    return equal >= least


def nnunet_command(name, image, labels):
    """The labels of nnUNetv2_predict, which finds the folder by its dataset.

    It adds windows in half precision, which changes up to 0.4 % of the labels of a volume this small.
    """
    scans, results = folder / "nnunet_scans", folder / "results"
    scans.mkdir(exist_ok=True)
    shutil.copy(image, scans / "case_0000.nii.gz")
    model = results / "Dataset001_Phantom" / "nnUNetTrainer__nnUNetPlans__3d_fullres"
    shutil.copytree(folder / f"{name}_nnunet", model, dirs_exist_ok=True)
    subprocess.run([pathlib.Path(sys.executable).parent / "nnUNetv2_predict", "-i", scans, "-o", folder / "nnunet_out",
                    "-d", "1", "-c", "3d_fullres", "-f", "0", "-device", "cpu", "-npp", "1", "-nps", "1"],
                   check=True, capture_output=True, env={**os.environ, "nnUNet_results": str(results)})
    return same_labels("nnUNetv2_predict", folder / "nnunet_out" / "case.nii.gz", labels, 0.996)


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
        if name == "residual":
            good &= nnunet_command(name, image, labels)
    return good


# ---- MONAI ---------------------------------------------------------------------------------------

STEPS = """[preprocess]
steps = orient crop_foreground spacing scale_range normalize
[preprocess.spacing]
mm = 1.3 1 1.2
[preprocess.scale_range]
from = 0 700
to = 0 1
clip = yes
"""
MONAI = {
    "unet": ("channels = 4 8\nstrides = 2\nnum_res_units = 1\nnorm = batch", "16 16 8"),
    "segresnet": ("init_filters = 8\nblocks_down = 1 1\nblocks_up = 1", "16 16 8"),
    "dynunet": ("kernel_size = 3 3,3,1 3\nstrides = 1 2 2,2,1\nupsample_kernel_size = 2 2,2,1\nfilters = 4 8 8\n"
                "deep_supervision = yes", "16 16 8"),
    "basicunet": ("features = 4 4 4 4 4 4\nnorm = group\nnum_groups = 2", "32"),
    "vnet": ("", "32"),
    "attention_unet": ("channels = 4 8\nstrides = 2", "16 16 8"),
    "swin_unetr": ("feature_size = 12", "64 64 32"),
}


def bundle_outputs(bundle, image):
    """Labels on the file's grid, the windows' logits brought there by MONAI, and which voxels lie within the image."""
    from monai.bundle import ConfigParser
    from monai.transforms import Invertd
    parser = ConfigParser()
    parser.read_config(bundle / "configs" / "inference.json")
    parser.read_meta(bundle / "configs" / "metadata.json")
    parser["bundle_root"], parser["output_dir"] = str(bundle), str(folder / "eval")
    network = parser.get_parsed_content("network")
    network.load_state_dict(torch.load(bundle / "models" / "model.pt", weights_only=True))
    network.eval()
    before = parser.get_parsed_content("preprocessing")
    item = before({"image": str(image)})
    with torch.no_grad():
        item["pred"] = parser.get_parsed_content("inferer")(item["image"][None], network)[0]
    back = Invertd(keys="pred", transform=before, orig_keys="image", nearest_interp=False)
    logits = back({**item, "pred": item["pred"].clone()})["pred"]
    within = back({**item, "pred": torch.ones_like(item["pred"][:1])})["pred"][0] > 0.999
    after = parser.get_parsed_content("postprocessing")(item)
    return numpy.asarray(after["pred"]), numpy.asarray(logits).transpose(1, 2, 3, 0), numpy.asarray(within)


def monai_row(name, plugin, options, extent, preprocess=STEPS, predict="resample = logits", edge=True):
    """Compare a run; without 'edge' only voxels within the preprocessed image count."""
    image = folder / "solid" / "imagesTr" / "phantom_001.nii.gz"
    run(name, "solid", preprocess, f"plugin = {plugin}\n{options}\n", extent, "mode = gaussian", predict)
    call("export", f"runs/{name}", "--bundle", f"{name}_bundle")
    labels, logits = predicted(name, image)
    own_labels, own_logits, within = bundle_outputs(folder / f"{name}_bundle", image)
    own_labels = own_labels[0] if labels.ndim == 3 else own_labels.transpose(1, 2, 3, 0)
    counted = within | edge
    return report(f"bundle {name}", labels[counted], logits[counted], own_labels[counted], own_logits[counted])


def bundle_run(name):
    """The labels that 'python -m monai.bundle run' writes are those of 'pons predict'."""
    image = folder / "solid" / "imagesTr" / "phantom_001.nii.gz"
    bundle, images = folder / f"{name}_bundle", folder / "scans"
    images.mkdir(exist_ok=True)
    shutil.copy(image, images)
    subprocess.run([sys.executable, "-m", "monai.bundle", "run", "--config_file", "configs/inference.json",
                    "--meta_file", "configs/metadata.json", "--bundle_root", ".", "--dataset_dir", str(images)],
                   cwd=bundle, check=True, capture_output=True)
    return same_labels("monai.bundle run", bundle / "eval" / image.name, predicted(name, image)[0])


def monai():
    good = [monai_row(plugin, plugin, options, extent) for plugin, (options, extent) in MONAI.items()]
    unet = ("unet", *MONAI["unet"])
    late = STEPS.replace("crop_foreground spacing scale_range", "spacing scale_range crop_foreground")
    late += "[preprocess.crop_foreground]\nabove = 0.001\n"
    good.append(monai_row("crop_last", *unet, preprocess=late, edge=False))
    good.append(monai_row("probabilities", *unet, predict="resample = probabilities"))
    # The nearest voxel has no rule of its own midway between two, so none of the positions i / mm is midway.
    good.append(monai_row("labels", *unet, preprocess=STEPS.replace("1.2", "1.1"), predict="resample = labels"))
    good.append(bundle_run("unet"))
    return all(good)


for name, extent in (("solid", "24,20,22"), ("flat", "24,3,22")):
    call("data", "phantom", "-o", name, "--cases", 2, "--extent", extent)
sys.exit(0 if all([nnunet(), monai()]) else 1)
