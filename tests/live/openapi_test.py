"""docs/openapi.json against a running `voda up`: schemathesis makes requests from it, good and bad, and every answer
must be one that the document promises."""
import os
import re
import subprocess

import live

SCHEMATHESIS = os.path.join(live.ROOT, "build/schemathesis/bin/schemathesis")
CONFIG = os.path.join(live.ROOT, "tests/live/schemathesis.toml")
EXAMPLES = os.environ.get("VODA_FUZZ_EXAMPLES", "15")  # per operation and phase
SEED = os.environ.get("VODA_SEED", "1")


class OpenApiTest(live.LiveTest):
    def test_every_answer_is_as_documented(self):
        self.assertTrue(os.path.exists(SCHEMATHESIS), "run tools/schemathesis_venv.sh first (make test does)")
        # The document's example is accepted, and many nodes are made up for it to run on: its torchrun is not found.
        up = live.Voda("--nodes", "a:2,b:2", "--rate-limit", "0s", "--algorithm", "ElasticFIFO",
                       environment={**os.environ, "PATH": "/nowhere"}).start()
        self.addCleanup(up.close)
        # An event stream does not end; live_api reads one. One worker: with more, Python 3.11.2 itself fails now and
        # then (the depth of its parser's recursion is counted over all threads).
        done = subprocess.run(
            [SCHEMATHESIS, "--config-file", CONFIG, "run", up.url + "/api/v1/openapi.json",
             "--header", "Authorization: Bearer " + up.token, "--max-examples", EXAMPLES,
             "--seed", SEED, "--workers", "1", "--request-timeout", "60", "--continue-on-failure", "--no-color",
             "--exclude-operation-id", "streamEvents"],
            cwd=up.folder, capture_output=True, text=True, timeout=1200)
        report = done.stdout + done.stderr
        self.assertEqual(done.returncode, 0, report[-20_000:] + up.tail())
        tested = re.search(r"Tested: (\d+)", report)
        cases = re.search(r"(\d+) generated", report)
        self.assertTrue(tested and cases, report[-4000:])
        self.assertGreaterEqual(int(tested[1]), 32, report[-4000:])
        self.assertGreaterEqual(int(cases[1]), 1000, report[-4000:])
        self.assertEqual(up.ask("GET", "/readyz", token=False, raw=True), "ok\n")
        print(f"{tested[1]} operations, {cases[1]} requests: every answer as documented")


if __name__ == "__main__":
    live.main()
