#!/usr/bin/env python3
"""Time a training step of PyTorch's DistributedDataParallel over gloo: what replicas of `pons bench` are put beside.

usage: ddp.py [--ranks N] [--threads N] [--precision fp32|bf16] [--layout contiguous|channels_last]
              [--patch N] [--batch N] [--steps N] [--warmup N]

N processes of N threads each, bound to equal shares of the processors, train MONAI's spleen U-Net on random patches that
stay in memory. The batch is that of each process. Prints one JSON line: seconds per step (median, all) of rank 0, and
micro-batches per second of all. One rank is a plain network without DistributedDataParallel.
Needs: pip install torch monai
"""
import argparse, json, os, socket, statistics, time
import torch
import torch.distributed as distributed
import torch.multiprocessing as multiprocessing
from monai.losses import DiceCELoss
from monai.networks.nets import UNet


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def bind(rank, ranks):
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) >= ranks:
        os.sched_setaffinity(0, mine[rank * len(mine) // ranks:(rank + 1) * len(mine) // ranks])


def train(rank, a, port):
    if a.ranks > 1:
        bind(rank, a.ranks)
    torch.set_num_threads(a.threads)
    torch.manual_seed(rank)
    net = UNet(3, 1, 2, (16, 32, 64, 128, 256), (2, 2, 2, 2), num_res_units=2, norm="batch")
    x = torch.randn(a.batch, 1, a.patch, a.patch, a.patch)
    y = torch.randint(0, 2, x.shape).float()
    if a.layout == "channels_last":
        net, x = (t.to(memory_format=torch.channels_last_3d) for t in (net, x))
    if a.ranks > 1:
        distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=a.ranks)
        net = torch.nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    loss = DiceCELoss(softmax=True, to_onehot_y=True)
    times = []
    for i in range(a.warmup + a.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=a.precision == "bf16"):
            value = loss(net(x).float(), y)
        value.backward()
        optimizer.step()
        times.append(time.perf_counter() - begin)
    times = times[a.warmup:]
    if rank == 0:
        median = statistics.median(times)
        print(json.dumps(dict(vars(a), torch=torch.__version__, median=round(median, 4), all=[round(t, 4) for t in times],
                              micro_batches_per_second=round(a.ranks / median, 3))), flush=True)
    if a.ranks > 1:
        distributed.destroy_process_group()


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    p.add_argument("--layout", choices=["contiguous", "channels_last"], default="channels_last")
    p.add_argument("--patch", type=int, default=96)
    p.add_argument("--batch", type=int, default=2)
    p.add_argument("--steps", type=int, default=5)
    p.add_argument("--warmup", type=int, default=1)
    a = p.parse_args()
    if a.ranks == 1:
        train(0, a, 0)
    else:
        multiprocessing.spawn(train, (a, free_port()), a.ranks)
