#!/usr/bin/env python3
"""Measures strong-scaling speed-ups of small models under PyTorch DDP (gloo), one CPU core per worker.

Prints the profile table that examples/workloads/speedups.csv is made of (docs/WORKLOADS.md). A fixed global batch is
split over n workers; a step is forward, backward, all-reduce and update on synthetic data. Each figure is the median of
several step times, slowest worker. Needs torch and as many cores as the largest size:

    python3 tools/measure_speedups.py 1 2 3 4 6 8 12 16 > table.csv
"""
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn


def conv_net():
    blocks, width = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU()], 32
    for out in (32, 64, 64):
        blocks += [nn.Conv2d(width, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(), nn.MaxPool2d(2)]
        width = out
    return nn.Sequential(*blocks, nn.Flatten(), nn.Linear(64 * 16, 10))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.lstm, self.head = nn.Embedding(2000, 128), nn.LSTM(128, 256, batch_first=True), nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.lstm(self.embed(x))[0][:, -1])


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(192, 4, 512, batch_first=True, dropout=0.0)
        self.embed, self.encoder, self.head = nn.Embedding(2000, 192), nn.TransformerEncoder(layer, 3), nn.Linear(192, 10)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x)).mean(1))


def wide_mlp():
    return nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))


def images(n):
    return torch.randn(n, 3, 32, 32)


def tokens(n):
    return torch.randint(0, 2000, (n, 48))


def vectors(n):
    return torch.randn(n, 512)


# name -> model, data, global batch
MODELS = {
    "convnet": (conv_net, images, 192),
    "lstm": (Recurrent, tokens, 96),
    "transformer": (Transformer, tokens, 96),
    "widemlp": (wide_mlp, vectors, 384),
}
WARM_UP, STEPS = 4, 14


def worker(rank, world, name, port, out):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[rank % len(cores)]})
    torch.manual_seed(rank)
    dist.init_process_group("gloo", rank=rank, world_size=world)
    make, data, batch = MODELS[name]
    model = nn.parallel.DistributedDataParallel(make())
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
    share = batch // world
    x, y = data(share), torch.randint(0, 10, (share,))
    times = []
    for step in range(WARM_UP + STEPS):
        dist.barrier()
        begin = time.perf_counter()
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
        took = torch.tensor([time.perf_counter() - begin])
        dist.all_reduce(took, op=dist.ReduceOp.MAX)
        if step >= WARM_UP:
            times.append(took.item())
    if rank == 0:
        out.put(statistics.median(times))
    dist.destroy_process_group()


def step_seconds(name, world, port):
    out = mp.get_context("spawn").SimpleQueue()
    mp.spawn(worker, (world, name, port, out), nprocs=world)
    return out.get()


def main():
    sizes = [int(n) for n in sys.argv[1:]] or [1, 2, 3, 4, 6, 8]
    print("profile,workers,nodes,speedup")
    port = 29600
    for name, (_, _, batch) in MODELS.items():
        one = None
        for n in sizes:
            assert batch % n == 0, f"the batch of {name} does not split over {n} workers"
            port += 1
            seconds = step_seconds(name, n, port)
            one = one or seconds
            print(f"{name},{n},,{one / seconds:.3f}", flush=True)
            print(f"# {name} on {n}: {1000 * seconds:.1f} ms a step", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
