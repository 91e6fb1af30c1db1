"""The machine's clock is set while `voda up` runs: nothing waits for it, and no time is counted twice."""
import os
import subprocess

import live

# Stands before the C library: the wall clock is off by as many seconds as the file says.
SHIFTED_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec* now) {
  static int (*real)(clockid_t, struct timespec*);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  const int code = real(clock, now);
  const char* path = getenv("CLOCK_OFF_BY");
  if (code != 0 || clock != CLOCK_REALTIME || !path) return code;
  char text[32] = "";
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0 && read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
  if (file >= 0) close(file);
  return code;
}
"""

DAY = 86_400


class ClockTest(live.LiveTest):
    def setUp(self):
        self.up = self.voda("--slots", "1", "--rate-limit", "0s")
        self.off_by = os.path.join(self.up.folder, "off_by")
        library = os.path.join(self.up.folder, "clock.so")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, "-x", "c", "-", "-ldl"], input=SHIFTED_CLOCK, text=True,
                       check=True)
        self.up.environment = {**os.environ, "LD_PRELOAD": library, "CLOCK_OFF_BY": self.off_by}
        self.set_clock(0)

    def set_clock(self, seconds):
        with open(self.off_by + ".new", "w") as file:
            file.write(str(seconds))
        os.rename(self.off_by + ".new", self.off_by)

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
