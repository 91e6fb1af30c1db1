"""Elastic Horovod as in Horovod's Keras MNIST example, with PyTorch: a convolutional network learns to read digits.

The digits are drawn in code: a 5x7 font, moved, scaled in brightness, with noise. Every process takes batches of its
own size, so more of them need fewer steps for an epoch, and the learning rate grows with them. Progress goes to the CSV
file of the first Voda, METRICS_DIR/JOB_NAME.csv. Takes --epochs, --store-dir (default: VODA_JOB_DIR) and, as that
example does, --name.
"""

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import horovod.torch as hvd  # noqa: E402
import torch  # noqa: E402

from voda_progress import Progress  # noqa: E402

BATCH = 32  # of a process
STEPS = int(os.environ.get("STEPS_PER_EPOCH", "48"))  # of all processes together
WAIT = float(os.environ.get("WAIT_MS", "50")) / 1000  # for the data of a batch
LEARNING_RATE = 0.001
FONT = ("0e11191513110e", "040c040404040e", "0e11010204081f", "1f02040201110e", "02060a121f0202",
        "1f101e0101110e", "0608101e11110e", "1f010204080808", "0e11110e11110e", "0e11110f01020c")  # rows of 5 bits


def glyphs():
    rows = [[int(digit[i:i + 2], 16) for i in range(0, 14, 2)] for digit in FONT]
    return torch.tensor([[[row >> (4 - x) & 1 for x in range(5)] for row in digit] for digit in rows]).float()


def digits(count, font, generator):
    """Images of 12x12 and what they show."""
    label = torch.randint(0, 10, (count,), generator=generator)
    move = torch.randint(0, 6, (count, 2), generator=generator)
    bright = 0.5 + 0.5 * torch.rand(count, 1, 1, generator=generator)
    image = torch.zeros(count, 12, 12)
    for i in range(count):
        y, x = int(move[i, 0]), int(move[i, 1])
        image[i, y:y + 7, x:x + 5] = font[label[i]]
    image = image * bright + 0.25 * torch.randn(count, 12, 12, generator=generator)
    return image.unsqueeze(1), label


def save(path, state):
    temporary = "%s.%d" % (path, os.getpid())
    torch.save({"model": state.model.state_dict(), "optimizer": state.optimizer.state_dict(), "epoch": state.epoch},
               temporary)
    os.replace(temporary, path)


@hvd.elastic.run
def train(state, options, checkpoint, progress):
    rank, size, font = hvd.rank(), hvd.size(), glyphs()
    for group in state.optimizer.param_groups:
        group["lr"] = LEARNING_RATE * size
    steps = -(-STEPS // size)
    progress.begin(epoch=state.epoch)
    while state.epoch < options.epochs:
        began = time.monotonic()
        generator = torch.Generator().manual_seed(state.epoch * 1009 + rank)
        total, right = torch.zeros(1), torch.zeros(1)
        for step in range(steps):
            image, label = digits(BATCH, font, generator)
            time.sleep(WAIT)
            guess = state.model(image)
            loss = torch.nn.functional.cross_entropy(guess, label)
            state.optimizer.zero_grad()
            loss.backward()
            state.optimizer.step()
            total += loss.detach()
            right += (guess.argmax(1) == label).float().mean()
            progress.step(step + 1, steps)
        loss, accuracy = (hvd.allreduce(value).item() / steps for value in (total, right))
        state.epoch += 1
        if rank == 0:
            save(checkpoint, state)
            print("epoch %d/%d workers %d loss %.4f accuracy %.3f (%.1f s)" %
                  (state.epoch, options.epochs, size, loss, accuracy, time.monotonic() - began), flush=True)
        progress.epoch(state.epoch - 1, loss=loss, accuracy=accuracy, local_batch_size=BATCH,
                       global_batch_size=BATCH * size)
        state.commit()
    if rank == 0:
        print("done epochs=%d workers=%d" % (options.epochs, size), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--name")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--store-dir", default=os.environ.get("VODA_JOB_DIR", "."))
    options = parser.parse_args()
    checkpoint = os.path.join(options.store_dir, "checkpoint.pt")

    torch.set_num_threads(1)
    hvd.init()
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 16, 3), torch.nn.ReLU(),
                                torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(256, 32), torch.nn.ReLU(),
                                torch.nn.Linear(32, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    epoch = 0
    if os.path.exists(checkpoint):
        content = torch.load(checkpoint)
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
        epoch = content["epoch"]
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    state = hvd.elastic.TorchState(model=model, optimizer=optimizer, epoch=epoch)
    with Progress(total_epochs=options.epochs, url=False) as progress:
        train(state, options, checkpoint, progress)


if __name__ == "__main__":
    main()
