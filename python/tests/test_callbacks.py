"""Tests of the callbacks of voda_progress: their hooks called by hand, and each in a small real training, by the Python
of VODA_FRAMEWORKS (tools/frameworks_venv.sh makes one)."""

import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import types
import unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from test_voda_progress import FOLDER, GENEROUS, Case  # noqa: E402

import voda_progress  # noqa: E402


FRAMEWORKS = os.environ.get("VODA_FRAMEWORKS")


class ByHand(Case):
    """Minimal stand-ins for the base classes, hooks called as the frameworks call them."""

    def fake(self, name, **members):
        module = types.ModuleType(name)
        vars(module).update(members)
        patch = mock.patch.dict(sys.modules, {name: module})
        patch.start()
        self.addCleanup(patch.stop)

    def test_keras(self):
        self.fake("tensorflow.keras.callbacks", Callback=type("Callback", (), {"params": None}))
        server = self.serve()
        callback = voda_progress.keras_callback(workers=2)
        callback.params = {"epochs": 4, "steps": 10}
        callback.on_train_begin()
        for epoch in (2, 3):  # initial_epoch=2
            callback.on_epoch_begin(epoch)
            callback.on_train_batch_end(0, {"loss": 9})
            callback.on_epoch_end(epoch, {"loss": 0.5, "accuracy": 1.0})
        callback.on_train_end()
        self.assertTrue(callback.progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("begin", 2), ("epoch", 2), ("epoch", 3)])
        self.assertEqual(server.bodies[1]["loss"], 0.5)
        self.assertEqual(server.bodies[1]["total_epochs"], 4)
        callback.on_train_begin()  # Elastic Horovod calls fit again
        callback.on_epoch_begin(3)
        self.assertTrue(callback.progress.flush(GENEROUS))
        self.assertEqual(server.phases()[-1], ("begin", 3))

    def test_lightning(self):
        self.fake("lightning.pytorch", Callback=type("Callback", (), {}))
        server = self.serve()
        callback = voda_progress.lightning_callback()
        trainer = types.SimpleNamespace(global_rank=0, max_epochs=3, current_epoch=1, num_training_batches=float("inf"),
                                        callback_metrics={"train_loss": 0.25, "val_loss": 7})
        callback.on_train_start(trainer, None)
        callback.on_train_batch_end(trainer, None, {"loss": 3.0}, None, 0)
        callback.on_train_epoch_end(trainer, None)
        trainer.current_epoch, trainer.callback_metrics = 2, {}
        callback.on_train_epoch_end(trainer, None)
        self.assertTrue(callback.progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("begin", 1), ("epoch", 1), ("epoch", 2)])
        self.assertEqual([body.get("loss") for body in server.bodies], [None, 0.25, 3.0])
        self.assertEqual(server.bodies[0]["total_epochs"], 3)

    def test_lightning_of_another_rank(self):
        self.fake("lightning.pytorch", Callback=type("Callback", (), {}))
        server = self.serve()
        callback = voda_progress.lightning_callback()
        trainer = types.SimpleNamespace(global_rank=1, max_epochs=-1, current_epoch=0, num_training_batches=3,
                                        callback_metrics={})
        callback.on_train_start(trainer, None)
        callback.on_train_epoch_end(trainer, None)
        callback.on_train_end(trainer, None)
        self.assertEqual(server.requests, 0)

    def state(self, **values):
        return types.SimpleNamespace(**dict({"is_world_process_zero": True, "epoch": 0.0, "global_step": 0,
                                             "max_steps": 40, "num_train_epochs": 4}, **values))

    def test_huggingface(self):
        self.fake("transformers", TrainerCallback=type("TrainerCallback", (), {}))
        server = self.serve()
        callback = voda_progress.huggingface_callback()
        state = self.state(epoch=1.9999999, global_step=20)  # resumed after two epochs
        callback.on_train_begin(None, state, None, model=None)
        callback.on_log(None, state, None, logs={"loss": 9.0, "learning_rate": 0.1, "epoch": 2.1})
        state.epoch = 2.98  # gradient accumulation does not divide the epoch evenly
        callback.on_epoch_end(None, state, None)
        callback.on_log(None, state, None, logs={"loss": 0.5})
        callback.on_epoch_begin(None, state, None)
        callback.on_epoch_end(None, state, None)  # without a log of its own
        callback.on_train_end(None, state, None)
        self.assertTrue(callback.progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("begin", 2), ("epoch", 2), ("epoch", 3)])
        self.assertEqual(server.bodies[1]["loss"], 0.5)
        self.assertEqual(server.bodies[1]["total_epochs"], 4)

    def test_huggingface_by_steps(self):
        self.fake("transformers", TrainerCallback=type("TrainerCallback", (), {}))
        server = self.serve()
        callback = voda_progress.huggingface_callback(steps_per_epoch=10)
        state = self.state(max_steps=35, epoch=0.01)
        callback.on_train_begin(None, state, None)
        for step in range(1, 36):
            state.global_step = step
            callback.on_step_end(None, state, None)
        callback.on_epoch_end(None, state, None)
        self.assertTrue(callback.progress.flush(GENEROUS))
        self.assertEqual(server.phases(), [("begin", 0), ("epoch", 0), ("epoch", 1), ("epoch", 2)])
        self.assertEqual(server.bodies[0]["total_epochs"], 4)

    def test_hooks_never_raise(self):
        self.fake("tensorflow.keras.callbacks", Callback=type("Callback", (), {}))
        self.fake("lightning.pytorch", Callback=type("Callback", (), {}))
        self.fake("transformers", TrainerCallback=type("TrainerCallback", (), {}))
        self.serve()
        keras, lightning = voda_progress.keras_callback(), voda_progress.lightning_callback()
        huggingface = voda_progress.huggingface_callback()
        keras.on_train_begin()  # no params
        keras.on_train_batch_end(object())
        keras.on_epoch_end("x", {"loss": object(), "self": 1, "epoch": 3})
        lightning.on_train_start(None, None)
        lightning.on_train_batch_end(None, None, None, None, None)
        lightning.on_train_epoch_end(None, None)
        huggingface.on_train_begin(None, None, None)
        huggingface.on_log(None, None, None, logs=5)
        huggingface.on_step_end(None, None, None)
        huggingface.on_epoch_end(None, None, None)
        huggingface.on_train_end(None, None, None)

    def test_a_framework_that_is_missing_is_named(self):
        with mock.patch.dict(sys.modules, {"transformers": None}):
            with self.assertRaisesRegex(ImportError, "transformers"):
                voda_progress.huggingface_callback()


@unittest.skipUnless(FRAMEWORKS, "LEFT OUT: callbacks in real training; VODA_FRAMEWORKS is not set (tools/frameworks_venv.sh)")
class Real(Case):
    """Each in a process of its own: frameworks are slow to import and leave things behind."""

    def train(self, script, **environment):
        server = self.serve()
        folder = tempfile.mkdtemp(prefix="voda_callback_test")
        self.addCleanup(shutil.rmtree, folder)
        done = subprocess.run([FRAMEWORKS, "-W", "ignore", "-c", textwrap.dedent(script)], cwd=folder, timeout=300,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env=dict(os.environ, PYTHONPATH=FOLDER + ":" + os.environ.get("PYTHONPATH", ""),
                                       CUDA_VISIBLE_DEVICES="", OMP_NUM_THREADS="1", **environment))
        self.assertEqual(done.returncode, 0, done.stdout)
        return server

    def check(self, server, total):
        epochs = [body for body in server.bodies if body["phase"] == "epoch"]
        self.assertEqual(server.phases()[0], ("begin", 0))
        self.assertEqual([body["epoch"] for body in epochs], list(range(total)))
        self.assertEqual({body["total_epochs"] for body in server.bodies}, {total})
        for body in epochs:
            self.assertGreater(body["epoch_seconds"], 0)
            self.assertGreater(body["loss"], 0)
        self.assertLess(epochs[-1]["loss"], epochs[0]["loss"])

    def test_keras(self):
        server = self.train("""
            import keras, numpy
            from voda_progress import keras_callback
            x = numpy.random.default_rng(0).normal(size=(256, 4)).astype("float32")
            model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(1)])
            model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
            model.fit(x, x.sum(1, keepdims=True), epochs=4, batch_size=32, verbose=0, callbacks=[keras_callback()])
            """, KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
        self.check(server, 4)

    def test_lightning(self):
        server = self.train("""
            # Debian's PyTorch calls itself 1.13.0a0, which Lightning takes for an older one. And Lightning imports
            # FSDP, used or not; there it has defaults that dataclasses of Python 3.11 take for mutable.
            import dataclasses, torch
            torch.__version__ = "1.13.0"
            plain = dataclasses.dataclass
            dataclasses.dataclass = lambda what, **options: plain(what, unsafe_hash="__hash__" not in vars(what), **options)
            import torch.distributed.fsdp
            dataclasses.dataclass = plain

            import pytorch_lightning as pl
            from voda_progress import lightning_callback

            class Model(pl.LightningModule):
                def __init__(self):
                    super().__init__()
                    self.layer = torch.nn.Linear(4, 1)
                def training_step(self, batch, index):
                    loss = ((self.layer(batch[0]) - batch[0].sum(1, keepdim=True)) ** 2).mean()
                    self.log("train_loss", loss, on_epoch=True)
                    return loss
                def configure_optimizers(self):
                    return torch.optim.SGD(self.parameters(), lr=0.1)

            torch.manual_seed(0)
            data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(256, 4)), batch_size=32)
            trainer = pl.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                                 enable_progress_bar=False, enable_model_summary=False,
                                 callbacks=[lightning_callback()])
            trainer.fit(Model(), data)
            """)
        self.check(server, 4)

    def test_huggingface(self):
        server = self.train("""
            import torch, transformers
            from voda_progress import huggingface_callback

            class Model(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.layer = torch.nn.Linear(4, 1)
                def forward(self, x, labels=None):
                    guess = self.layer(x)
                    return {"loss": ((guess - labels) ** 2).mean(), "logits": guess}

            torch.manual_seed(0)
            x = torch.randn(256, 4)
            data = [{"x": row, "labels": row.sum(0, keepdim=True)} for row in x]
            arguments = transformers.TrainingArguments(
                output_dir="out", num_train_epochs=4, per_device_train_batch_size=32, learning_rate=0.1,
                logging_strategy="epoch", save_strategy="no", report_to=[], disable_tqdm=True)
            trainer = transformers.Trainer(model=Model(), args=arguments, train_dataset=data,
                                           callbacks=[huggingface_callback()])
            trainer.train()
            """)
        self.check(server, 4)


if __name__ == "__main__":
    unittest.main()
