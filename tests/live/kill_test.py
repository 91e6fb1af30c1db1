"""Kill -9 of `voda up` at random moments over a workload, restarted each time: every job completes once, with the result
and the number of starts of the run that nobody disturbed."""
import os
import random
import re
import time
import unittest

import live

KILLS = int(os.environ.get("VODA_KILLS", "12"))
JOBS = max(6, 2 * KILLS // 5)  # six keep the slots busy for about 20 kills
SEED = int(os.environ.get("VODA_SEED", "1"))


def workload():
    """Jobs of two workers on four slots. FIFO starts each exactly once, since all are of one size: it would stop a
    smaller one that had slipped in before."""
    train = [live.PYTHON, "examples/jobs/train_stdlib.py"]
    env = {"EPOCHS": 12, "STEPS_PER_EPOCH": 4, "WAIT_MS": 80}
    jobs = []
    for i in range(JOBS):
        jobs.append(live.job(f"job-{i}", train, workers=2, env={**env, "SEED": i}, backoff=0, grace=3))
    return jobs


class KillTest(live.LiveTest):
    maxDiff = None

    def run_workload(self, kills):
        voda = self.voda("--nodes", "a:2,b:2", "--algorithm", "FIFO", "--rate-limit", "0s").start()
        names = []
        rng = random.Random(SEED)
        pending = workload()
        for yaml in pending:
            names += voda.submit(yaml)
        killed = 0
        deadline = time.monotonic() + 900
        while True:
            if time.monotonic() > deadline:
                self.fail(f"not done in time: {[(j['name'], j['status'], j['message']) for j in voda.jobs().values()]}"
                          f"\n{voda.tail()}")
            jobs = voda.jobs()
            self.assertEqual(sorted(jobs), sorted(names), "no accepted job is ever lost")
            for job in jobs.values():
                self.assertNotIn(job["status"], ("Failed", "Canceled"), job["message"])
            if all(job["status"] == "Completed" for job in jobs.values()):
                break
            if killed < kills:
                time.sleep(rng.uniform(0, 0.8))
                voda.kill()
                killed += 1
                voda.start()
            else:
                time.sleep(0.2)
        results = {}
        for name, job in voda.jobs().items():
            log = voda.ask("GET", f"/api/v1/jobs/{name}/logs", raw=True)
            done = re.findall(r"^done steps=(\S+) loss=(\S+) checksum=(\S+)", log, re.M)
            starts = os.path.join(voda.folder, "jobs", str(job["id"]), "work", "starts.log")
            with open(starts) as file:
                started = sorted(line.split()[1] for line in file)
            results[re.sub(r"-\d{8}-\d{6}(-\d+)?$", "", name)] = (done, started)
        return results, killed

    def test_every_job_completes_once_with_the_undisturbed_result(self):
        undisturbed, _ = self.run_workload(0)
        for name, (done, starts) in undisturbed.items():
            self.assertEqual(len(done), 1, name)
            self.assertEqual(len(starts), 2, name)
        disturbed, killed = self.run_workload(KILLS)
        print(f"killed {killed} times (seed {SEED})")
        self.assertEqual(killed, KILLS, "the workload was over too soon to be disturbed so often")
        self.assertEqual(disturbed, undisturbed)


if __name__ == "__main__":
    live.main()
