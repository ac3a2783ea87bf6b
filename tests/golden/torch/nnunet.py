"""Write a checkpoint as nnU-Net's for tests/unit/cli/check_import.sh: nnunet.pth, whose kernels have the axes of a
plan, and nnunet.safetensors, the same weights with the axes of a file."""
import os
import torch
from dynamic_network_architectures.architectures.unet import PlainConvUNet
from safetensors.torch import save_file

here = os.path.dirname(os.path.abspath(__file__))
torch.manual_seed(0)
forward, backward = [2, 0, 1], [1, 2, 0]
net = PlainConvUNet(1, 2, [2, 2], torch.nn.Conv3d, [[1, 3, 5], [3, 3, 3]], [[1, 1, 1], [1, 2, 2]], 1, 2, 1,
                    conv_bias=True, norm_op=torch.nn.InstanceNorm3d, norm_op_kwargs=dict(eps=1e-5, affine=True),
                    nonlin=torch.nn.LeakyReLU)
state = net.state_dict()
plans = {"transpose_forward": forward, "transpose_backward": backward}
torch.save({"network_weights": state, "init_args": {"plans": plans}}, os.path.join(here, "nnunet.pth"))
# File axis d is plan axis backward[2 - d].
turn = [0, 1] + [2 + backward[2 - d] for d in range(3)]
unique = {k: v for k, v in state.items() if not k.startswith("decoder.encoder.") and ".all_modules." not in k}
save_file({k: v.permute(turn).contiguous() if v.dim() == 5 else v.clone() for k, v in unique.items()},
          os.path.join(here, "nnunet.safetensors"))
