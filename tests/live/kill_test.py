"""Kill -9 of `voda up` at random moments over a workload, restarted each time: every job completes once, with the result
and the number of starts of the run that nobody disturbed."""
import os
import random
import re
import time
import unittest

import live

KILLS = int(os.environ.get("VODA_KILLS", "12"))
JOBS = max(6, 2 * KILLS // 5)  # six keep the slots busy for about 20 kills; else more are added
SEED = int(os.environ.get("VODA_SEED", "1"))


def job(i):
    """One of the workload: of two workers on four slots. FIFO starts each exactly once, since all are of one size: it
    would stop a smaller one that had slipped in before."""
    train = [live.PYTHON, "examples/jobs/train_stdlib.py"]
    env = {"EPOCHS": 12, "STEPS_PER_EPOCH": 4, "WAIT_MS": 80, "SEED": i}
    return live.job(f"job-{i}", train, workers=2, env=env, backoff=0, grace=3)


class KillTest(live.LiveTest):
    maxDiff = None

    def run_workload(self, kills, count):
        voda = self.voda("--nodes", "a:2,b:2", "--algorithm", "FIFO", "--rate-limit", "0s").start()
        names = []
        rng = random.Random(SEED)
        for i in range(count):
            names += voda.submit(job(i))
        killed = 0
        deadline = time.monotonic() + 900
        while True:
            if time.monotonic() > deadline:
                self.fail(f"not done in time: {[(j['name'], j['status'], j['message']) for j in voda.jobs().values()]}"
                          f"\n{voda.tail()}")
            jobs = voda.jobs()
            self.assertEqual(sorted(jobs), sorted(names), "no accepted job is ever lost")
            for one in jobs.values():
                self.assertNotIn(one["status"], ("Failed", "Canceled"), one["message"])
            left = sum(one["status"] != "Completed" for one in jobs.values())
            if left < 2 and killed < kills:
                names += voda.submit(job(len(names)))
            elif left == 0:
                break
            if killed < kills:
                time.sleep(rng.uniform(0, 0.8))
                voda.kill()
                killed += 1
                voda.start()
            else:
                time.sleep(0.2)
        results = {}
        for name, one in voda.jobs().items():
            log = voda.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True)
            done = re.findall(r"^done steps=(\S+) loss=(\S+) checksum=(\S+)", log, re.M)
            starts = os.path.join(voda.folder, "jobs", str(one["id"]), "work", "starts.log")
            with open(starts) as file:
                started = sorted(line.split()[1] for line in file)
            results[re.sub(r"-\d{8}-\d{6}(-\d+)?$", "", name)] = (done, started)
        return results, killed

    def test_every_job_completes_once_with_the_undisturbed_result(self):
        disturbed, killed = self.run_workload(KILLS, JOBS)
        print(f"killed {killed} times (seed {SEED})")
        self.assertEqual(killed, KILLS, "the workload was over too soon to be disturbed so often")
        undisturbed, _ = self.run_workload(0, len(disturbed))
        for name, (done, starts) in undisturbed.items():
            self.assertEqual(len(done), 1, name)
            self.assertEqual(len(starts), 2, name)
        self.assertEqual(disturbed, undisturbed)


if __name__ == "__main__":
    live.main()
