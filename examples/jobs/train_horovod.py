"""Elastic Horovod on CPUs: a small network learns to tell two spirals apart, on any number of processes.

The state is committed after every epoch: when processes come or go, the others keep theirs and go on from there. After
every epoch rank 0 also writes a checkpoint, from which the job goes on when all of it was stopped. Batches are of a
fixed size and shared; a process waits for its share of the data before it computes, so more of them are faster.

Environment: EPOCHS (20), STEPS_PER_EPOCH (25), WAIT_MS (110: data for one whole batch), SEED (1), VODA_JOB_DIR (the
folder of the checkpoint; default: the current one). A file `enough` in that folder ends the training with the epoch
under way, as if it were the last.
"""

import hashlib
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import horovod.torch as hvd  # noqa: E402
import torch  # noqa: E402

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


def checksum(model):
    digest = hashlib.sha256()
    for value in model.state_dict().values():
        digest.update(value.numpy().tobytes())
    return digest.hexdigest()[:16]


def save(model, optimizer, epoch, losses):
    content = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch, "losses": losses}
    temporary = "%s.%d" % (CHECKPOINT, os.getpid())
    with open(temporary, "wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, CHECKPOINT)


def train_epoch(model, optimizer, epoch, progress):
    """The loss of the epoch, and whether it was the last."""
    rank, size = hvd.rank(), hvd.size()
    first, last = BATCH * rank // size, BATCH * (rank + 1) // size
    generator = torch.Generator().manual_seed(SEED * 1_000_003 + epoch)
    total = torch.zeros(1)
    for step in range(STEPS):
        points, labels = spirals(BATCH, generator)
        time.sleep(WAIT * (last - first) / BATCH)
        points, labels = points[first:last], labels[first:last]
        loss = torch.nn.functional.binary_cross_entropy_with_logits(model(points).squeeze(1), labels, reduction="sum")
        optimizer.zero_grad()
        (loss * size / BATCH).backward()  # gradients are averaged over the processes
        optimizer.step()
        total += loss.detach()
        progress.step(step + 1, STEPS)
    # Rank 0 looks for all of them, since they must leave together.
    sums = torch.tensor([total.item(), float(rank == 0 and os.path.exists(ENOUGH))])
    sums = hvd.allreduce(sums, op=hvd.Sum)
    return sums[0].item() / (BATCH * STEPS), sums[1].item() > 0 or epoch + 1 >= EPOCHS


@hvd.elastic.run
def train(state, progress):
    """Called anew whenever the processes changed; the state is the last one committed, the same on all."""
    size = hvd.size()
    if hvd.rank() == 0:
        print("start epoch %d workers %d" % (state.epoch, size), flush=True)
    progress.begin(epoch=state.epoch)
    last = state.epoch >= EPOCHS
    while not last:
        began = time.monotonic()
        loss, last = train_epoch(state.model, state.optimizer, state.epoch, progress)
        state.losses = state.losses + [loss]
        state.epoch += 1
        if hvd.rank() == 0:
            save(state.model, state.optimizer, state.epoch, state.losses)
            print("epoch %d/%d workers %d loss %.4f (%.1f s)" %
                  (state.epoch, EPOCHS, size, loss, time.monotonic() - began), flush=True)
        progress.epoch(state.epoch - 1, loss=loss)
        state.commit()  # raises where processes are to come or go, and train() is called again


def main():
    torch.set_num_threads(1)
    hvd.init()
    torch.manual_seed(SEED)
    model = torch.nn.Sequential(torch.nn.Linear(2, 48), torch.nn.ReLU(), torch.nn.Linear(48, 48), torch.nn.ReLU(),
                                torch.nn.Linear(48, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
    epoch, losses = 0, []
    if os.path.exists(CHECKPOINT):  # whoever joins later gets rank 0's state instead
        content = torch.load(CHECKPOINT)
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
        epoch, losses = content["epoch"], content["losses"]
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=epoch, losses=losses)
    progress = Progress(total_epochs=EPOCHS)
    train(state, progress)
    if hvd.rank() == 0:
        print("done steps=%d loss=%.4f checksum=%s" % (state.epoch * STEPS, state.losses[-1], checksum(state.model)),
              flush=True)
    progress.close()


if __name__ == "__main__":
    main()
