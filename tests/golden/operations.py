#!/usr/bin/env python3
"""Writes operations.h: small inputs and PyTorch's results in double, channels last."""
import torch
import torch.nn.functional as F

torch.manual_seed(11)
torch.set_default_dtype(torch.float64)
lines = []


def emit(name, t):
    flat = t.detach().reshape(-1).tolist()
    text = ", ".join("%.15g" % v for v in flat)
    lines.append("static const double golden_%s[] = { %s };" % (name, text))


def image(*shape):
    """Random eighths, exact in every type: [N, C, D, H, W]."""
    return (torch.randint(-16, 17, shape) / 8.0).requires_grad_()


def last(t):
    return t.permute(0, 2, 3, 4, 1).contiguous()


def weight_last(w):
    return w.permute(0, 2, 3, 4, 1).contiguous()


# Convolution: stride 2 1 2, dilation 1 2 1, padding low 1 2 0 high 0 1 1, two groups.
x, w = image(2, 4, 4, 5, 4), image(6, 2, 2, 3, 3)
y = F.conv3d(F.pad(x, (0, 1, 2, 1, 1, 0)), w, stride=(2, 1, 2), dilation=(1, 2, 1), groups=2)
dy = (torch.randint(-8, 9, y.shape) / 8.0)
y.backward(dy)
for name, t in (("x", x), ("y", y), ("dy", dy), ("dx", x.grad)):
    emit("convolution_" + name, last(t))
emit("convolution_w", weight_last(w))
emit("convolution_dw", weight_last(w.grad))
print("convolution", list(last(y).shape))

# Transposed convolution: stride 2 3 1, padding 1 0 1, output padding 1 2 0, dilation 1 1 2, two groups.
x, w = image(1, 4, 2, 3, 3), image(4, 3, 3, 2, 2)
y = F.conv_transpose3d(x, w, stride=(2, 3, 1), padding=(1, 0, 1), output_padding=(1, 2, 0),
                       dilation=(1, 1, 2), groups=2)
print("transposed", list(last(y).shape))
emit("transposed_x", last(x))
emit("transposed_w", weight_last(w))
emit("transposed_y", last(y))

# Pooling: kernel 3 2 2, stride 2, padding 1 1 0, ceil.
x = image(1, 2, 5, 4, 3)
emit("pool_x", last(x))
y = F.max_pool3d(x, (3, 2, 2), 2, (1, 1, 0), ceil_mode=True)
print("pool", list(last(y).shape))
emit("pool_max", last(y))
emit("pool_mean", last(F.avg_pool3d(x, (3, 2, 2), 2, (1, 1, 0), ceil_mode=True)))

# Resizing 3 x 4 x 2 to 5 x 2 x 3.
x = image(1, 2, 3, 4, 2)
emit("resize_x", last(x))
for name, mode in (("nearest", "nearest"), ("exact", "nearest-exact"), ("linear", "trilinear")):
    emit("resize_" + name, last(F.interpolate(x, (5, 2, 3), mode=mode)))
emit("resize_aligned", last(F.interpolate(x, (5, 2, 3), mode="trilinear", align_corners=True)))

# Norms of [2, 3, 2, 2, 6].
x = image(2, 6, 3, 2, 2)
scale, shift = image(6), image(6)
emit("norm_x", last(x))
emit("norm_scale", scale)
emit("norm_shift", shift)
emit("norm_instance", last(F.instance_norm(x, weight=scale, bias=shift, eps=1e-5)))
emit("norm_group", last(F.group_norm(x, 3, scale, shift, 1e-5)))
emit("norm_layer", F.layer_norm(last(x), (6,), scale, shift, 1e-5))
emit("norm_batch", last(F.batch_norm(x, None, None, scale, shift, training=True, eps=1e-5)))
emit("norm_softmax", last(F.softmax(x, 1)))
emit("norm_log_softmax", last(F.log_softmax(x, 1)))

# Padding of [1, 2, 3, 4, 1]: D by 1 0, H by 2 1, W by 0 3.
x = image(1, 1, 2, 3, 4)
emit("pad_x", last(x))
emit("pad_reflect", last(F.pad(x, (0, 3, 2, 1, 1, 0), mode="reflect")))
emit("pad_edge", last(F.pad(x, (0, 3, 2, 1, 1, 0), mode="replicate")))

# Pointwise: two operands and one.
a = torch.tensor([-2.5, -1.5, -0.5, 0.0, 0.25, 0.5, 1.5, 2.5])
b = torch.tensor([1.0, -1.5, 2.0, 0.5, 0.0, 3.0, 1.5, -1.0])
emit("map_a", a)
emit("map_b", b)
two = dict(add=torch.add, sub=torch.sub, mul=torch.mul, div=None, min=torch.minimum, max=torch.maximum,
           equal=torch.eq, not_equal=torch.ne, less=torch.lt, less_equal=torch.le, greater=torch.gt,
           greater_equal=torch.ge, **{"and": torch.logical_and, "or": torch.logical_or})
for name, f in two.items():
    if f is not None:
        emit("map_" + name, f(a, b).double())
emit("map_div", a / (b + 4))
emit("map_pow", a.abs() ** b.abs())
one = dict(neg=torch.neg, abs=torch.abs, sign=torch.sign, floor=torch.floor, round=torch.round,
           exp=torch.exp, expm1=torch.expm1, sin=torch.sin, cos=torch.cos, tanh=torch.tanh,
           erf=torch.erf, sigmoid=torch.sigmoid, log_sigmoid=F.logsigmoid, relu=torch.relu,
           gelu=F.gelu,
           **{"not": torch.logical_not})
for name, f in one.items():
    emit("map_" + name, f(a).double())
emit("map_sqrt", (a + 3).sqrt())
emit("map_log", (a + 3).log())
emit("map_log1p", (a + 3).log1p())
emit("map_select", torch.where(a != 0, b, a + 3))
emit("bf16", torch.tensor([1 / 3, -2.7182818, 1e-3, 65504.0]).to(torch.bfloat16).double())
emit("f16", torch.tensor([1 / 3, -2.7182818, 1e-6, 65504.0]).to(torch.float16).double())

with open("operations.h", "w") as f:
    f.write("/* operations.h - written by operations.py with PyTorch %s. */\n" %
            torch.__version__.split("+")[0])
    for line in lines:
        words, row = line.split(" "), ""
        for word in words:
            if len(row) + len(word) > 98:
                f.write(row.rstrip() + "\n")
                row = "    "
            row += word + " "
        f.write(row.rstrip() + "\n")
