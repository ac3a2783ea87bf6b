#!/usr/bin/env python3
"""Writes sharpen.safetensors: what MONAI's GaussianSharpen makes of 'image' of transforms_more.safetensors.

usage: sharpen.py OUT

sharpen_0: sigma1 0.7, sigma2 0.6, alpha 12. sharpen_1: sigma1 0.5 0.9 1.0, sigma2 0.5 0.55 0.75, alpha 20.
Needs: pip install torch monai safetensors (these: torch 2.15.0, monai 1.6.1).
"""
import pathlib, sys
import numpy as np
import torch
from monai.transforms import GaussianSharpen
from safetensors.numpy import load_file, save_file

out = pathlib.Path(sys.argv[1])
image = torch.from_numpy(load_file(pathlib.Path(__file__).parent / "transforms_more.safetensors")["image"])
cases = [dict(sigma1=0.7, sigma2=0.6, alpha=12.0), dict(sigma1=[0.5, 0.9, 1.0], sigma2=[0.5, 0.55, 0.75], alpha=20.0)]
save_file({f"sharpen_{n}": np.ascontiguousarray(GaussianSharpen(**c)(image).numpy()) for n, c in enumerate(cases)},
          out / "sharpen.safetensors")
