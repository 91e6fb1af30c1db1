"""Training on a GPU under torchrun: a wide network learns what another, fixed one computes. Nearly all of it is matrix
products, so the printed TFLOP/s say what the GPU gives. Elastic, one GPU per worker, a checkpoint after every epoch.
Works with PyTorch 1.13 and 2.x. Without CUDA it says so and trains a small network on the CPU instead.

Environment: EPOCHS (20), STEPS_PER_EPOCH (200; 20 without a GPU), WIDTH (8192; 128), SEED (1), VODA_JOB_DIR (the folder of
the checkpoint; default: the current one).
"""

import io
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import torchrun_leave

torchrun_leave.on_sigterm()

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from voda_progress import Progress  # noqa: E402

CUDA = torch.cuda.is_available()
EPOCHS = int(os.environ.get("EPOCHS", "20"))
STEPS = int(os.environ.get("STEPS_PER_EPOCH") or (200 if CUDA else 20))
WIDTH = int(os.environ.get("WIDTH") or (8192 if CUDA else 128))
SEED = int(os.environ.get("SEED", "1"))
BATCH = 4096 if CUDA else 128  # of all workers together
INPUT, LAYERS = 256, 4
CHECKPOINT = os.path.join(os.environ.get("VODA_JOB_DIR", "."), "checkpoint.pt")


def say(text):
    if dist.get_rank() == 0:
        print(text, flush=True)


def choose_device():
    if not CUDA:
        torch.set_num_threads(1)
        print("no CUDA: torch %s sees no GPU (CUDA_VISIBLE_DEVICES=%s); training a small network on the CPU" %
              (torch.__version__, os.environ.get("CUDA_VISIBLE_DEVICES", "is not set")), flush=True)
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())
    torch.cuda.set_device(device)
    torch.backends.cuda.matmul.allow_tf32 = True
    print("%s, torch %s" % (torch.cuda.get_device_name(device), torch.__version__), flush=True)
    return device


def network(width, seed):
    torch.manual_seed(seed)
    layers = [torch.nn.Linear(INPUT, width), torch.nn.ReLU()]
    for _ in range(LAYERS - 2):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(width, 1))


def save(model, optimizer, epoch):
    temporary = "%s.%d" % (CHECKPOINT, os.getpid())
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}, temporary)
    os.replace(temporary, CHECKPOINT)


def main():
    device = choose_device()
    devices = [device.index] if CUDA else None
    dist.init_process_group("nccl" if CUDA else "gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    teacher = network(64, SEED + 1).to(device)
    model = network(WIDTH, SEED).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    start = 0
    if os.path.exists(CHECKPOINT):  # nobody writes before all have begun
        with open(CHECKPOINT, "rb") as file:
            content = torch.load(io.BytesIO(file.read()), map_location=device)
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
        start = content["epoch"]
    dist.barrier(device_ids=devices)
    say("start epoch %d workers %d" % (start, size))

    parallel = DistributedDataParallel(model, device_ids=devices)
    share = BATCH * (rank + 1) // size - BATCH * rank // size
    operations = 6 * BATCH * STEPS * sum(p.numel() for p in model.parameters())  # forward, and twice that backward
    progress = Progress(total_epochs=EPOCHS)
    progress.begin(epoch=start)
    loss = None
    for epoch in range(start, EPOCHS):
        began = time.monotonic()
        generator = torch.Generator(device=device).manual_seed((SEED * 100_003 + epoch) * 1009 + rank)
        total = torch.zeros(1, device=device)
        for step in range(STEPS):
            points = torch.randn(share, INPUT, device=device, generator=generator)
            with torch.no_grad():
                truth = teacher(points) * 10
            part = torch.nn.functional.mse_loss(parallel(points), truth, reduction="sum")
            optimizer.zero_grad(set_to_none=True)
            (part * size / BATCH).backward()
            optimizer.step()
            total += part.detach()
            progress.step(step + 1, STEPS)
        dist.all_reduce(total)
        loss = total.item() / (BATCH * STEPS)
        seconds = time.monotonic() - began
        if rank == 0:
            save(model, optimizer, epoch + 1)
        say("epoch %d/%d workers %d loss %.6f (%.1f s) %.1f TFLOP/s" %
            (epoch + 1, EPOCHS, size, loss, seconds, operations / seconds / 1e12))
        progress.epoch(epoch, loss=loss)
    say("done steps=%d%s" % (EPOCHS * STEPS, "" if loss is None else " loss=%.6f" % loss))
    progress.close()
    dist.barrier(device_ids=devices)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
