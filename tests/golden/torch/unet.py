"""Write the weights of one small UNet of MONAI for tests/unit/cli/check_import.sh: unet.pt (channels last, under
'model'), unet_old.pth (the format before PyTorch 1.6, wrapped names), unet_half.pt (float16, double, bfloat16, of a
compiled network), unet.safetensors, differs.pt (a tensor is missing, one is unknown, one has another shape),
infinite.pt, huge.pt (1e300 as float64), expanded.pt, calls.pt (a pickle that calls), and a bundle's model.pt and
inference.json."""
import json
import os
import torch
from monai.networks.nets import UNet
from safetensors.torch import save_file

here = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(0)
options = dict(spatial_dims=3, in_channels=1, out_channels=2, channels=(2, 4), strides=(2,), num_res_units=1,
               norm="batch")
net = UNet(**options)
for module in net.modules():
    if isinstance(module, torch.nn.BatchNorm3d):
        module.running_mean.uniform_(-1, 1)
        module.running_var.uniform_(0.5, 2)
state = net.state_dict()


def save(value, name, **more):
    torch.save(value, os.path.join(here, name), **more)


save_file(state, os.path.join(here, "unet.safetensors"))
last = {k: v.to(memory_format=torch.channels_last_3d) if v.dim() == 5 else v for k, v in state.items()}
save({"model": last, "optimizer": {"state": {0: torch.zeros(4)}}, "epoch": 2}, "unet.pt")
save({"state_dict": {"module.net." + k: v for k, v in state.items()}}, "unet_old.pth",
     _use_new_zipfile_serialization=False)
types = [torch.float16, torch.float64, torch.bfloat16]
save({"_orig_mod." + k: v.to(types[i % 3]) if v.is_floating_point() else v for i, (k, v) in enumerate(state.items())},
     "unet_half.pt")
differs = dict(state)
names = [k for k in state if k.endswith("conv.weight")]
del differs[names[-1]]
differs[names[0]] = torch.ones(2, 2)
differs["extra.weight"] = torch.ones(3)
save(differs, "differs.pt")
infinite = {k: v.clone() for k, v in state.items()}
infinite[names[0]].view(-1)[1] = float("inf")
save(infinite, "infinite.pt")
huge = {k: v.clone() for k, v in state.items()}
huge[names[0]] = huge[names[0]].double()
huge[names[0]].view(-1)[1] = 1e300
save(huge, "huge.pt")
expanded = {k: v.clone() for k, v in state.items()}
expanded[names[0]] = torch.zeros(1).expand(state[names[0]].shape)
save(expanded, "expanded.pt")


class Call:
    def __reduce__(self):
        return os.system, ("touch called",)


save({"state_dict": Call()}, "calls.pt")
os.makedirs(os.path.join(here, "bundle/models"), exist_ok=True)
os.makedirs(os.path.join(here, "bundle/configs"), exist_ok=True)
save(state, "bundle/models/model.pt")
network = {"_target_": "UNet", **options, "out_channels": "@classes", "strides": [2]}
with open(os.path.join(here, "bundle/configs/inference.json"), "w") as f:
    json.dump({"imports": ["$import glob"], "classes": 2, "device": "$torch.device('cpu')", "network_def": network,
               "network": "$@network_def.to(@device)"}, f, indent=1)
    f.write("\n")
