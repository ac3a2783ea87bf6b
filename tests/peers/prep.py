#!/usr/bin/env python3
"""nnU-Net's preprocessing and fingerprint, and MONAI's surface metrics, on the files that pons gets.

usage: prep.py FOLDER make           writes FOLDER/raw/Dataset901_Near and Dataset902_Far (4 CT each, the second with thick
                                     slices), and a pair of 256^3 label volumes with 5 classes in labels and predictions
       prep.py FOLDER near|far       processor seconds of DefaultPreprocessor.run_case on all cases
       prep.py FOLDER print          those of DatasetFingerprintExtractor.run with one process on Dataset940_Many
       prep.py FOLDER metrics        those of reading the pair and its hd95 and nsd, and the peak in MiB
"""
import importlib, json, os, pathlib, resource, sys

import numpy as np

NAMES = {"near": "Dataset901_Near", "far": "Dataset902_Far"}
CASES = {"near": [((256, 256, 120), (0.75, 0.75, 1.25)), ((256, 240, 110), (0.8, 0.8, 1.5)),
                  ((240, 256, 100), (0.85, 0.85, 1.5)), ((256, 256, 90), (0.8, 0.8, 2.0))],
         "far": [((320, 320, 40), (0.75, 0.75, 5.0)), ((300, 320, 36), (0.8, 0.8, 5.0)),
                 ((320, 300, 44), (0.85, 0.85, 4.0)), ((320, 320, 34), (0.8, 0.8, 6.0))]}


def write_case(folder, n, extent, spacing):
    import nibabel as nib
    rng = np.random.default_rng(n)
    i, j, k = np.meshgrid(*[np.linspace(-1, 1, e, dtype=np.float32) for e in extent], indexing="ij")
    image = np.where(i ** 2 + 1.4 * j ** 2 < 0.8, 40, -1000).astype(np.float32)
    label = np.zeros(extent, np.uint8)
    for c in range(1, 5):
        x = rng.uniform(-0.4, 0.4, 3)
        organ = (i - x[0]) ** 2 + (j - x[1]) ** 2 + (k - x[2]) ** 2 / 2 < rng.uniform(0.03, 0.1)
        image[organ] += 30 * c
        label[organ] = c
    image += 15 * rng.standard_normal(extent, dtype=np.float32)
    affine = np.diag([-spacing[0], -spacing[1], spacing[2], 1.0])
    nib.save(nib.Nifti1Image(image.astype(np.int16), affine), folder / f"imagesTr/case_{n}_0000.nii.gz")
    nib.save(nib.Nifti1Image(label, affine), folder / f"labelsTr/case_{n}.nii.gz")


def write_header(folder, count):
    (folder / "dataset.json").write_text(json.dumps({
        "channel_names": {"0": "CT"}, "labels": {"background": 0, "a": 1, "b": 2, "c": 3, "d": 4},
        "numTraining": count, "file_ending": ".nii.gz"}))


def make_pair(folder):
    import nibabel as nib
    n = 256
    grid = np.stack(np.meshgrid(*[np.arange(n, dtype=np.float32)] * 3, indexing="ij"))

    def volume(shift, scale):
        rng = np.random.default_rng(1)
        out = np.zeros((n, n, n), np.uint8)
        for c in range(1, 5):
            centre, radius = rng.uniform(70, 186, 3) + shift, rng.uniform(25, 60, 3) * scale
            distance = sum(((grid[i] - centre[i]) / radius[i]) ** 2 for i in range(3))
            out[distance + 0.1 * np.sin(grid[0] / 7) * np.cos(grid[1] / 5) < 1] = c
        return out

    label, prediction = volume(0, 1), volume(np.array([2, -1, 3]), 1.03)
    prediction[np.random.default_rng(0).random(prediction.shape) < 1e-4] = 1
    for name, voxels in (("labels", label), ("predictions", prediction)):
        (folder / name).mkdir(exist_ok=True)
        nib.save(nib.Nifti1Image(voxels, np.eye(4)), folder / name / "a.nii.gz")


def make(folder):
    for kind, cases in CASES.items():
        raw = folder / "raw" / NAMES[kind]
        for name in ("imagesTr", "labelsTr"):
            (raw / name).mkdir(parents=True, exist_ok=True)
        for n, (extent, spacing) in enumerate(cases):
            write_case(raw, n, extent, spacing)
        write_header(raw, len(cases))
    many, near = folder / "raw/Dataset940_Many", folder / "raw" / NAMES["near"]
    for name, end in (("imagesTr", "_0000"), ("labelsTr", "")):
        (many / name).mkdir(parents=True, exist_ok=True)
        for n in range(40):
            os.link(near / name / f"case_{n % 4}{end}.nii.gz", many / name / f"case_{n}{end}.nii.gz")
    write_header(many, 40)
    make_pair(folder)


def spent():
    t = os.times()
    return t.user + t.system + t.children_user + t.children_system


def set_folders(folder):
    for name in ("raw", "preprocessed", "results"):
        os.environ[f"nnUNet_{name}"] = str(folder / name)
        (folder / name).mkdir(exist_ok=True)


def extractor_class():
    module = importlib.import_module("nnunetv2.experiment_planning.dataset_fingerprint.fingerprint" + "_extractor")
    return module.DatasetFingerprintExtractor


def preprocess(folder, kind):
    set_folders(folder)
    import torch
    from nnunetv2.experiment_planning.experiment_planners.default_experiment_planner import ExperimentPlanner
    from nnunetv2.preprocessing.preprocessors.default_preprocessor import DefaultPreprocessor
    from nnunetv2.utilities.plans_handling.plans_handler import PlansManager
    torch.set_num_threads(1)
    extractor = extractor_class()(NAMES[kind], 1)
    plan = folder / "preprocessed" / NAMES[kind] / "nnUNetPlans.json"
    if not plan.exists():
        extractor.run(True)
        ExperimentPlanner(NAMES[kind]).plan_experiment()
    plans, worker = PlansManager(str(plan)), DefaultPreprocessor(verbose=False)
    begin = spent()
    for case in extractor.dataset.values():
        worker.run_case(case["images"], case["label"], plans, plans.get_configuration("3d_fullres"),
                        extractor.dataset_json)
    return spent() - begin


def fingerprint(folder):
    set_folders(folder)
    extractor = extractor_class()("Dataset940_Many", 1)
    imported = spent()
    begin = spent()
    extractor.run(True)
    return spent() - begin - imported  # the worker imports everything again


def metrics(folder):
    import nibabel as nib, torch
    from monai.metrics import compute_hausdorff_distance, compute_surface_dice
    torch.set_num_threads(1)
    begin = spent()
    pair = [torch.nn.functional.one_hot(torch.from_numpy(np.asarray(nib.load(folder / name / "a.nii.gz").dataobj))
                                        .long(), 5).permute(3, 0, 1, 2)[None].to(torch.uint8)
            for name in ("predictions", "labels")]
    compute_hausdorff_distance(*pair, percentile=95, spacing=(1, 1, 1))
    compute_surface_dice(*pair, [1.0] * 4, spacing=(1, 1, 1))
    return spent() - begin


if __name__ == "__main__":
    place, word = pathlib.Path(sys.argv[1]), sys.argv[2]
    if word == "make":
        make(place)
    else:
        seconds = {"print": fingerprint, "metrics": metrics}.get(word, lambda f: preprocess(f, word))(place)
        print(f"\nfigures {seconds:.3f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
