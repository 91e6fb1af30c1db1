"""The machine's clock is set while `voda up` runs: nothing waits for it, and no time is counted twice."""
import os

import live

DAY = 86_400


class ClockTest(live.LiveTest):
    def setUp(self):
        self.up = self.voda("--slots", "1", "--rate-limit", "0s")
        clock = live.ShiftedClock(self.up.folder)
        self.up.environment = clock.environment
        self.set_clock = clock.set

    def now(self):
        return self.up.ask("GET", "/api/v1/info")["now"]

    def test_set_back_and_forth(self):
        self.up.start()
        folder = os.path.join(self.up.folder, "jobs", "2")
        [first] = self.up.submit(live.job("first", ["sleep", "300"]))
        self.up.wait(first, "Running")
        with open(folder, "w"):
            pass  # where its folder would be: it cannot be started
        [stuck] = self.up.submit(live.job("stuck", ["true"]))
        for seconds in (-DAY, DAY, -DAY):
            before = self.now()
            self.set_clock(seconds)
            self.assertLess(abs(self.now() - before), 60)
            job = self.up.job(first)
            self.assertLess(job["total_seconds"], 600)
            self.assertLessEqual(job["running_seconds"], job["total_seconds"] + 1e-3)
            self.assertGreaterEqual(job["total_seconds"], 0)
        self.up.ask("DELETE", f"/api/v1/jobs/{first}")
        live.wait_for(lambda: "action failed" in self.up.tail(200), 60, lambda: f"failed starts\n{self.up.tail()}")
        self.set_clock(-2 * DAY)
        os.remove(folder)
        self.up.wait(stuck, "Completed", 60)

    def test_a_restart_under_an_earlier_clock(self):
        self.up.start()
        [first] = self.up.submit(live.job("first", ["sleep", "300"]))
        [second] = self.up.submit(live.job("second", ["true"]))
        self.up.wait(first, "Running")
        self.up.kill()
        self.set_clock(-DAY)
        self.up.start()
        job = self.up.job(first)
        self.assertEqual(job["status"], "Running")
        self.assertLessEqual(job["running_seconds"], job["total_seconds"])
        self.up.ask("DELETE", f"/api/v1/jobs/{first}")
        job = self.up.wait(second, "Completed")
        self.assertGreaterEqual(job["total_seconds"], 0)
        self.assertLess(job["total_seconds"], 600)


if __name__ == "__main__":
    live.main()
