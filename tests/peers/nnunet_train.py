#!/usr/bin/env python3
"""nnU-Net's side of nnunet_train.sh: a dataset, its plan, trainings by nnU-Net's own trainer, and pseudo Dice.

usage: nnunet_train.py FOLDER data
       nnunet_train.py FOLDER plan [PATCH FEATURES...]
       nnunet_train.py FOLDER train SEED STEPS THREADS [FAR_END]
       nnunet_train.py FOLDER score WEIGHTS

data: the head of mricron-data at 2 mm, cut into eight blocks, with the brain outside the atlas and the atlas as
classes. plan: nnU-Net's planner and preprocessing, with a smaller patch and widths, where they are given. train:
STEPS steps of nnUNetTrainer in epochs of ten; prints the processor seconds of the steps, and saves
FOLDER/nnunet-SEED.pt. With FAR_END 'inside' patches on foreground stay in the volume; else they reach beyond its far
end, as nnU-Net's do. score: the pseudo Dice of each class over 50 batches of nnU-Net's validation
loader.
"""
import json
import os
import pathlib
import sys
import time

folder = pathlib.Path(sys.argv[1]).resolve()
for variable in ("raw", "preprocessed", "results"):
    os.environ["nnUNet_" + variable] = str(folder / variable)

import nibabel
import numpy
import torch

name = "Dataset001_Head"
templates = pathlib.Path("/usr/share/mricron/templates")
epoch = 10


def make_data():
    raw = folder / "raw" / name
    (raw / "imagesTr").mkdir(parents=True)
    (raw / "labelsTr").mkdir()
    head, brain, atlas = (nibabel.load(templates / f"{file}.nii.gz") for file in ("ch2", "ch2bet", "aal"))
    affine = head.affine @ numpy.diag([2, 2, 2, 1])
    head, brain, atlas = (numpy.asarray(file.dataobj)[::2, ::2, ::2] for file in (head, brain, atlas))
    label = numpy.where(atlas > 0, 2, brain > 0).astype(numpy.uint8)
    cases = []
    for number in range(8):
        box = tuple(slice(n // 2 * (number >> a & 1), n // 2 * ((number >> a & 1) + 1))
                    for a, n in enumerate(head.shape))
        cases.append(f"block_{number}")
        for kind, array, suffix in (("imagesTr", head, "_0000"), ("labelsTr", label, "")):
            nibabel.Nifti1Image(array[box], affine).to_filename(raw / kind / f"{cases[-1]}{suffix}.nii.gz")
    (raw / "dataset.json").write_text(json.dumps({
        "channel_names": {"0": "T1"}, "labels": {"background": 0, "brain": 1, "atlas": 2}, "numTraining": len(cases),
        "file_ending": ".nii.gz"}))
    split = json.dumps([{"train": cases[:3] + cases[4:7], "val": [cases[3], cases[7]]}])
    for place in (raw, folder / "preprocessed" / name):
        place.mkdir(parents=True, exist_ok=True)
        (place / "splits_final.json").write_text(split)


def make_plan(patch=None, *features):
    from nnunetv2.experiment_planning import plan_and_preprocess_api as api
    api.extract_fingerprints([1], num_processes=1)
    api.plan_experiments([1])
    path = folder / "preprocessed" / name / "nnUNetPlans.json"
    plans = json.loads(path.read_text())
    configuration = plans["configurations"]["3d_fullres"]
    kept = configuration["architecture"]["arch_kwargs"]
    print(json.dumps({"batch": configuration["batch_size"], "patch": configuration["patch_size"],
                      "strides": kept["strides"], "kernels": kept["kernel_sizes"],
                      "features": kept["features_per_stage"]}))
    if patch is not None:
        configuration["patch_size"] = [int(patch)] * 3
        kept["features_per_stage"] = [int(f) for f in features]
        path.write_text(json.dumps(plans))
    api.preprocess([1], configurations=["3d_fullres"], num_processes=[1])


def open_trainer(seed):
    from nnunetv2.training.nnUNetTrainer.nnUNetTrainer import nnUNetTrainer
    os.environ["nnUNet_n_proc_DA"] = "0"
    numpy.random.seed(seed)
    torch.manual_seed(seed)
    place = folder / "preprocessed" / name
    plans = json.loads((place / "nnUNetPlans.json").read_text())
    plans["continue_training"] = False
    trainer = nnUNetTrainer(plans, "3d_fullres", 0, json.loads((folder / "raw" / name / "dataset.json").read_text()),
                            torch.device("cpu"))
    trainer.plot_network_architecture = lambda: None
    return trainer


def keep_inside():
    """nnU-Net holds a patch on foreground at the near end of each axis; hold it at the far end too."""
    from nnunetv2.training.dataloading.data_loader import nnUNetDataLoader
    get_bbox = nnUNetDataLoader.get_bbox

    def get_inside(self, shape, *rest, **named):
        low, _ = get_bbox(self, shape, *rest, **named)
        size = [int(n) for n in self.patch_size]
        pad = [max(int(n), p - s) for n, p, s in zip(self.need_to_pad, size, shape)]
        low = [int(min(a, s + (n + 1) // 2 - p)) for a, s, n, p in zip(low, shape, pad, size)]
        return low, [a + p for a, p in zip(low, size)]

    nnUNetDataLoader.get_bbox = get_inside


def train(seed, steps, threads, far_end="beyond"):
    torch.set_num_threads(int(threads))
    if far_end == "inside":
        keep_inside()
    trainer = open_trainer(int(seed))
    trainer.num_epochs, trainer.num_iterations_per_epoch = int(steps) // epoch, epoch
    trainer.on_train_start()
    begin = time.process_time()
    for trainer.current_epoch in range(trainer.num_epochs):
        trainer.on_epoch_start()
        trainer.on_train_epoch_start()
        trainer.on_train_epoch_end([trainer.train_step(next(trainer.dataloader_train)) for _ in range(epoch)])
    print("seconds %.1f" % (time.process_time() - begin))
    torch.save(trainer.network.state_dict(), folder / f"nnunet-{seed}.pt")


def read_weights(path, network):
    """Those of pons have kernels along i j k of the file; nnU-Net's are along the axes of its arrays, z y x."""
    if path.endswith(".pt"):
        return torch.load(path)
    from safetensors.torch import load_file
    found = {key: value.permute(0, 1, 4, 3, 2) if value.ndim == 5 else value for key, value in load_file(path).items()}
    wanted = network.state_dict()
    for key in wanted:
        first = key.replace("decoder.encoder.", "encoder.").replace("all_modules.0", "conv").replace("all_modules.1",
                                                                                                       "norm")
        wanted[key] = found[first]
    return wanted


def score(path):
    trainer = open_trainer(0)
    trainer.on_train_start()
    trainer.network.load_state_dict(read_weights(path, trainer.network))
    trainer.on_validation_epoch_start()
    numpy.random.seed(1)
    with torch.no_grad():
        batches = [trainer.validation_step(next(trainer.dataloader_val))
                   for _ in range(trainer.num_val_iterations_per_epoch)]
    tp, fp, fn = (numpy.sum([b[kind] for b in batches], 0) for kind in ("tp_hard", "fp_hard", "fn_hard"))
    dice = 2 * tp / (2 * tp + fp + fn)
    print("dice %.4f" % dice.mean(), *("%.4f" % d for d in dice))


if __name__ == "__main__":
    {"data": make_data, "plan": make_plan, "train": train, "score": score}[sys.argv[2]](*sys.argv[3:])
