#!/usr/bin/env python3
"""Writes one_class.json and .safetensors: losses whose Dice term is left with one class, and weights.

usage: one_class.py OUT

What the fields mean: as in losses.json. MONAI's DiceLoss leaves a single class unweighted, its cross-entropy takes the
weights of all classes (of a single channel: as positive weight), its focal loss takes one number, not a list of one.
Needs: pip install torch monai safetensors (these: torch 2.15.0, monai 1.6.1).
"""
import json, pathlib, sys
import numpy as np
import torch
from monai.losses import DiceCELoss, DiceFocalLoss
from safetensors.numpy import save_file

torch.set_num_threads(1)
LOSSES = {"dice_ce": DiceCELoss, "dice_focal": DiceFocalLoss}
CASES = [
    # loss, classes, spatial, softmax?, options of the loss
    ("dice_ce", 2, (5, 6, 7), True, dict(include_background=False, weight=[1.0, 5.0])),
    ("dice_ce", 2, (4, 5, 6), True, dict(include_background=False, weight=[0.5, 3.0], reduction="sum", batch=True)),
    ("dice_ce", 1, (6, 5, 4), False, dict(weight=[2.5])),
    ("dice_ce", 1, (4, 5, 4), False, dict(weight=[0.4], reduction="sum", jaccard=True)),
    ("dice_focal", 2, (5, 6, 7), True, dict(include_background=False, weight=[4.0])),
    ("dice_focal", 1, (6, 5, 4), False, dict(weight=[2.5])),
    ("dice_focal", 1, (4, 4, 5), False, dict(weight=[0.3], reduction="sum", alpha=0.25, squared_pred=True)),
]

out = pathlib.Path(sys.argv[1])
draws = torch.Generator().manual_seed(5)
cases, arrays = [], {}
for n, (kind, classes, shape, softmax, options) in enumerate(CASES):
    name = f"{kind}_one_{n}"
    x = (2 * torch.randn((2, classes) + shape, generator=draws)).float()
    if softmax:
        y = torch.randint(0, classes, (2, 1) + shape, generator=draws)
    else:
        y = (torch.rand((2, classes) + shape, generator=draws) < 0.3).long()
    weight = options["weight"]
    weight = torch.tensor(weight, dtype=torch.float64) if kind == "dice_ce" else weight[0]
    activation = dict(softmax=True, to_onehot_y=True) if softmax else dict(sigmoid=True)
    z = x.double().requires_grad_()
    value = LOSSES[kind](**(options | dict(weight=weight) | activation))(z, y.double())
    value.backward()
    cases.append(dict(name=name, loss=kind, activation="softmax" if softmax else "sigmoid", options=options,
                      value=value.item()))
    arrays |= {f"{name}/logits": x.numpy(), f"{name}/target": y.to(torch.uint8).numpy(),
               f"{name}/gradient": z.grad.float().numpy()}
(out / "one_class.json").write_text(json.dumps(cases, indent=1) + "\n")
save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, out / "one_class.safetensors")
