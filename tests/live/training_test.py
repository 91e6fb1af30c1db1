"""Real elastic training under `voda up`: torchrun and Elastic Horovod grow, shrink, are preempted to zero and come back,
move between nodes and complete, and from outside the ranks that compute are those of the plan."""
import os
import re
import time
import unittest

import live

SLOTS = 4


def example(name, **replace):
    with open(os.path.join(live.ROOT, "examples", "jobs", name)) as file:
        text = file.read()
    for key, value in replace.items():
        text, found = re.subn(rf'(- name: {key}\b[^\n]*\n\s*value: )"[^"]*"', rf'\1"{value}"', text)
        assert found, f"{name} has no {key}"
    return text


def logs_of(voda, name):
    """Of each worker. Rank 0 prints, and any worker may have been rank 0 for a while."""
    job = voda.job(name)
    workers = 1 if job["kind"] == "MPIJob" else max(size["to"] for size in job["sizes"])
    logs = []
    for worker in range(workers):
        try:
            logs.append(voda.ask("GET", f"/api/v1/jobs/{name}/logs?worker={worker}", raw=True))
        except live.HttpError as error:
            if error.status != 404:  # it was planned and never started
                raise
    return logs


def epochs_of(voda, name):
    """(epoch, loss) as printed."""
    found = re.findall(r"epoch (\d+)/\d+ .*?loss ([0-9.e+-]+)", "".join(logs_of(voda, name)))
    return sorted((int(epoch), float(loss)) for epoch, loss in found)


def until(path):
    """A command that ends once the test has made the file."""
    return [live.PYTHON, "-c", f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.1)"]


class TrainingTest(live.LiveTest):
    def settled(self, voda, sizes, seconds=120):
        """Waits until the jobs hold these sizes and exactly as many ranks compute."""
        def agrees():
            counted = live.ranks(voda.folder)
            self.assertLessEqual(sum(counted.values()), SLOTS, counted)
            jobs = voda.jobs()
            return all(jobs[name]["workers"] == size and counted.get(name, 0) == size for name, size in sizes.items())
        live.wait_for(agrees, seconds, lambda: f"{sizes}; ranks {live.ranks(voda.folder)}, "
                      f"{[(j['name'], j['status'], j['workers'], j['planned'], j['message']) for j in voda.jobs().values()]}"
                      f"\n{voda.tail()}", every=0.3)

    def reaches(self, voda, name, epoch):
        live.wait_for(lambda: (voda.job(name)["progress"] or {"epoch": 0})["epoch"] >= epoch, 180,
                      lambda: f"epoch {epoch} of {name}\n{voda.tail()}\n"
                      + voda.ask("GET", f"/api/v1/jobs/{name}/logs?tail=20", raw=True))

    def falls(self, voda, name):
        printed = epochs_of(voda, name)
        self.assertGreater(len(printed), 3, printed)
        self.assertLess(printed[-1][1], 0.7 * printed[0][1], printed)

    def goes_on_from_checkpoints(self, voda, name):
        """No epoch is trained twice after its checkpoint, and none is left out. A worker that was stopped between its
        checkpoint and its line has not printed that epoch; then the next start names it."""
        epochs, starts = [], set()
        for log in logs_of(voda, name):
            last = 0
            for start, epoch in re.findall(r"start epoch (\d+) workers|epoch (\d+)/\d+ .*?loss", log):
                if start:
                    self.assertGreaterEqual(int(start), last, log)
                    starts.add(int(start))
                else:
                    last = int(epoch)
                    epochs.append(last)
        self.assertEqual(len(epochs), len(set(epochs)), sorted(epochs))
        self.assertGreater(len(epochs), 0)
        left_out = set(range(1, max(epochs) + 1)) - set(epochs)
        self.assertLessEqual(left_out, starts, sorted(epochs))

    def test_torchrun_grows_shrinks_is_preempted_moves_and_completes(self):
        voda = self.voda("--nodes", "a:2,b:2", "--algorithm", "ElasticFIFO", "--rate-limit", "1s").start()
        long = example("pytorch-elastic.yaml", EPOCHS=80, STEPS_PER_EPOCH=10, WAIT_MS=120)
        [first] = voda.submit(long)
        self.settled(voda, {first: 4})  # grows into all idle slots
        self.reaches(voda, first, 1)
        [second] = voda.submit(long.replace("name: pytorch-elastic", "name: second").replace('"80"', '"1000"'))
        live.wait_for(lambda: voda.job(second)["workers"] >= 1, 60, "the second to start")
        jobs = voda.jobs()
        self.settled(voda, {first: jobs[first]["planned"], second: jobs[second]["planned"]})
        self.assertLess(voda.job(first)["workers"], 4)

        self.reaches(voda, first, voda.job(first)["progress"]["epoch"] + 2)
        self.reaches(voda, second, 1)

        # A rigid job with a higher priority takes everything: both are stopped and come back from their checkpoints.
        go = os.path.join(voda.folder, "go")
        rigid = live.job("urgent", until(go), workers=4)
        rigid = rigid.replace("metadata: {name: urgent}",
                              'metadata: {name: urgent, annotations: {vodascheduler/priority: "10"}}')
        [urgent] = voda.submit(rigid)
        live.wait_for(lambda: voda.job(urgent)["workers"] == 4, 90, lambda: f"preemption\n{voda.tail()}")
        self.assertEqual(voda.job(first)["status"], "Waiting")
        self.assertEqual(voda.job(first)["workers"], 0)
        before = voda.job(first)["progress"]["epoch"]
        self.assertGreater(before, 0)
        open(go, "w").close()
        voda.wait(urgent, "Completed")
        live.wait_for(lambda: voda.job(first)["workers"] >= 1, 60, "the first to come back")
        self.assertEqual(voda.job(first)["failures"], 0, "preemption is no failure")
        self.reaches(voda, first, before + 1)  # from its checkpoint
        self.goes_on_from_checkpoints(voda, first)

        # A migration: its node is drained, the workers go to the other.
        voda.ask("DELETE", f"/api/v1/jobs/{second}")
        self.settled(voda, {first: 4})
        voda.ask("PATCH", f"/api/v1/jobs/{first}", {"max": 2, "min": 1})
        self.settled(voda, {first: 2})
        node = voda.job(first)["nodes"][0]
        other = {"a": "b", "b": "a"}[node]
        voda.ask("POST", f"/api/v1/nodes/{node}/drain")
        live.wait_for(lambda: set(voda.job(first)["nodes"]) == {other}, 90, lambda: f"migration\n{voda.tail()}")
        self.settled(voda, {first: 2})
        job = voda.wait(first, "Completed", 300)
        self.assertEqual(job["progress"]["epoch"], 80)
        self.assertEqual(job["failures"], 0)
        self.falls(voda, first)
        sizes = [(size["from"], size["to"]) for size in job["sizes"]]
        print("sizes", sizes)
        self.assertIn(0, [to for _, to in sizes])

    def test_elastic_horovod_grows_and_shrinks(self):
        voda = self.voda("--nodes", "a:2,b:2", "--algorithm", "ElasticFIFO", "--rate-limit", "1s").start()
        go = os.path.join(voda.folder, "go")
        # Few steps with a long wait for data: else, on busy cores, four would be measured to be slower than one, and
        # nobody would give it four again.
        [name] = voda.submit(example("horovod-elastic.yaml", EPOCHS=40, STEPS_PER_EPOCH=10, WAIT_MS=450))
        size = voda.job(name)["max"]
        self.settled(voda, {name: min(size, SLOTS)})
        [other] = voda.submit(live.job("other", until(go), workers=SLOTS - 1))
        live.wait_for(lambda: voda.job(other)["status"] == "Running", 90, lambda: f"a shrink\n{voda.tail()}")
        self.settled(voda, {name: 1})
        # Trains at that size: hosts that come while Horovod starts may go unnoticed.
        self.reaches(voda, name, (voda.job(name)["progress"] or {"epoch": 0})["epoch"] + 1)
        open(go, "w").close()
        voda.wait(other, "Completed")
        self.settled(voda, {name: min(size, SLOTS)})
        job = voda.wait(name, "Completed", 300)
        self.assertEqual(job["failures"], 0)
        self.falls(voda, name)

    def script(self, voda, text):
        path = os.path.join(voda.folder, "script.py")
        with open(path, "w") as file:
            file.write(text)
        return path

    def test_a_script_that_fails_under_a_torchrun_of_a_shell_fails(self):
        voda = self.voda("--slots", "2", "--rate-limit", "1s").start()
        script = self.script(voda, "raise SystemExit('a mistake')\n")
        shell = f"true; exec /usr/bin/torchrun --redirects 1 --tee 1 {script}"
        [name] = voda.submit(live.job("hidden", ["sh", "-c", shell], max_workers=1, backoff=1))
        job = voda.wait(name, "Failed", 60)
        self.assertIn("training failed and torchrun started it again (failure 2, backoffLimit 1)", job["message"])

    def test_torchrun_needs_no_flags(self):
        voda = self.voda("--slots", "2", "--rate-limit", "1s").start()
        script = self.script(voda, "import os\nprint('rank', os.environ['RANK'], flush=True)\n")
        [name] = voda.submit(live.job("plain", ["/usr/bin/torchrun", script], max_workers=1, backoff=0))
        voda.wait(name, "Completed", 60)
        log = voda.ask("GET", f"/api/v1/jobs/{name}/logs?worker=0", raw=True)
        self.assertRegex(log, r"(?m)^rank 0$")


if __name__ == "__main__":
    live.main()
