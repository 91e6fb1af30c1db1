"""Elastic PyTorch training on CPUs: a small network learns to tell two spirals apart.

Every step takes a batch of a fixed size, of which each worker computes its share, so the training is the same on any
number of workers. Before it computes, a worker waits for its share of the data, as a loader on a slow disk would: that
is what makes more workers faster even where cores are few. After every epoch rank 0 writes a checkpoint, and whoever
starts goes on from it. Runs under torchrun, or as a plain process with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT.

Environment: EPOCHS (20), STEPS_PER_EPOCH (25), WAIT_MS (110: data for one whole batch), SEED (1), VODA_JOB_DIR (the
folder of the checkpoint; default: the current one). A file `enough` in that folder ends the training with the epoch
under way, as if it were the last.
"""

import datetime
import hashlib
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

BATCH = 256
EPOCHS = int(os.environ.get("EPOCHS", "20"))
STEPS = int(os.environ.get("STEPS_PER_EPOCH", "25"))
WAIT = float(os.environ.get("WAIT_MS", "110")) / 1000
SEED = int(os.environ.get("SEED", "1"))
FOLDER = os.environ.get("VODA_JOB_DIR", ".")
CHECKPOINT = os.path.join(FOLDER, "checkpoint.pt")
ENOUGH = os.path.join(FOLDER, "enough")


def spirals(count, generator):
    """Points on two spirals that wind around each other, and which of the two each belongs to."""
    label = torch.randint(0, 2, (count,), generator=generator)
    along = torch.rand(count, generator=generator)
    angle = along * 2.5 * torch.pi + label * torch.pi
    points = torch.stack([angle.cos(), angle.sin()], dim=1) * (0.1 + 0.9 * along).unsqueeze(1)
    return points + 0.02 * torch.randn(count, 2, generator=generator), label.float()


def make_model():
    torch.manual_seed(SEED)
    return torch.nn.Sequential(torch.nn.Linear(2, 48), torch.nn.ReLU(), torch.nn.Linear(48, 48), torch.nn.ReLU(),
                               torch.nn.Linear(48, 1))


def checksum(model):
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()[:16]


def save(model, optimizer, epoch, losses):
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "losses": losses,
             "checksum": checksum(model)}
    temporary = "%s.%d" % (CHECKPOINT, os.getpid())
    with open(temporary, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, CHECKPOINT)


def load(rank):
    """The checkpoint as rank 0 sees it, for all ranks alike: its bytes, or None."""
    content = [None]
    if rank == 0 and os.path.exists(CHECKPOINT):
        with open(CHECKPOINT, "rb") as file:
            content[0] = file.read()
    dist.broadcast_object_list(content)
    return torch.load(io.BytesIO(content[0])) if content[0] else None


def main():
    torch.set_num_threads(1)
    # Without a limit, those who wait here for a worker that was taken away meanwhile wait for half an hour.
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()

    model = make_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    start, losses = 0, []
    state = load(rank)
    if state is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start, losses = state["epoch"], state["losses"]
        if checksum(model) != state["checksum"]:
            raise SystemExit("%s is damaged: its checksum does not match" % CHECKPOINT)
    if rank == 0:
        print("start epoch %d workers %d" % (start, size), flush=True)

    parallel = DistributedDataParallel(model)
    share = range(BATCH * rank // size, BATCH * (rank + 1) // size)
    progress = Progress(total_epochs=EPOCHS)
    progress.begin(epoch=start)
    epoch, enough = start, False
    while epoch < EPOCHS and not enough:
        began = time.monotonic()
        generator = torch.Generator().manual_seed(SEED * 1_000_003 + epoch)
        total = torch.zeros(1)
        for step in range(STEPS):
            points, labels = spirals(BATCH, generator)
            time.sleep(WAIT * len(share) / BATCH)
            points, labels = points[share.start:share.stop], labels[share.start:share.stop]
            loss = torch.nn.functional.binary_cross_entropy_with_logits(parallel(points).squeeze(1), labels,
                                                                        reduction="sum")
            optimizer.zero_grad()
            (loss * size / BATCH).backward()  # gradients are averaged over the workers
            optimizer.step()
            total += loss.detach()
            progress.step(step + 1, STEPS)
        # Rank 0 looks for all of them, since they must leave together.
        sums = torch.tensor([total.item(), float(rank == 0 and os.path.exists(ENOUGH))])
        dist.all_reduce(sums)
        losses.append(sums[0].item() / (BATCH * STEPS))
        enough = sums[1].item() > 0
        if rank == 0:
            save(model, optimizer, epoch + 1, losses)
            print("epoch %d/%d workers %d loss %.4f (%.1f s)" %
                  (epoch + 1, EPOCHS, size, losses[-1], time.monotonic() - began), flush=True)
        progress.epoch(epoch, loss=losses[-1])
        epoch += 1

    if rank == 0:
        print("done steps=%d loss=%.4f checksum=%s" % (epoch * STEPS, losses[-1], checksum(model)), flush=True)
    progress.close()
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
