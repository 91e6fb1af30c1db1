#!/usr/bin/env python3
"""Writes the project's own table of speed-ups: examples/workloads/speedups.csv and src/sim/builtin_profiles.cc.

The numbers are synthetic, not measured. A worker's share of a step at n workers over k nodes takes

    t(n, k) = serial + parallel / n + sync(n, k)
    sync    = 0 for n = 1, else volume * 2 (n - 1) / n / bandwidth + latency * ceil(log2 n)

with parallel = 1 - serial (Amdahl), and a ring all-reduce whose bandwidth and latency are those of a node's inside while
k = 1 and of the network beyond. s(n) = t(1) / t(n), rounded to three digits. Packed means nodes of PACKED_GPUS GPUs.
Times are in units of one step on one worker, volume in units of what the inside of a node moves in that time.

Run it from anywhere; it rewrites both files. A test compares them.
"""
import math
import pathlib

PACKED_GPUS = 8
NETWORK = 4.0  # how much slower the network is than the inside of a node
LATENCY = 0.0005  # per hop inside a node, times NETWORK beyond
SIZES = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32]

# profile: (serial share, volume, largest size, whether spreading over more nodes than needed is listed)
KINDS = {
    "vision-small": (0.030, 0.004, 16, False),
    "vision-large": (0.006, 0.002, 32, True),
    "text-encoder": (0.010, 0.008, 32, True),
    "text-large": (0.004, 0.012, 32, True),
    "speech": (0.025, 0.006, 16, False),
    # Falls when it leaves a node: slower on 12 workers than on 8.
    "detector": (0.020, 0.040, 16, True),
    # Hardly scales at all, and not over nodes.
    "recommender": (0.250, 0.080, 8, True),
    "diffusion": (0.003, 0.001, 32, False),
}


def step_time(serial, volume, workers, nodes):
    if workers == 1:
        return 1.0
    slower = NETWORK if nodes > 1 else 1.0
    sync = volume * slower * 2 * (workers - 1) / workers
    sync += LATENCY * slower * math.ceil(math.log2(workers))
    return serial + (1 - serial) / workers + sync


def rows():
    for name in sorted(KINDS):
        serial, volume, largest, spread = KINDS[name]
        for workers in (size for size in SIZES if size <= largest):
            packed = -(-workers // PACKED_GPUS)
            yield f"{name},{workers},,{1 / step_time(serial, volume, workers, packed):.3f}"
            if spread and 1 < workers and packed == 1:
                yield f"{name},{workers},2,{1 / step_time(serial, volume, workers, 2):.3f}"


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    table = "profile,workers,nodes,speedup\n" + "\n".join(rows()) + "\n"
    (root / "examples/workloads/speedups.csv").write_text(table.replace(",1.000\n", ",1\n"))
    source = (root / "src/sim/builtin_profiles.cc")
    source.write_text(
        "// Written by tools/make_speedups.py; change the model there. The same table as "
        "examples/workloads/speedups.csv.\n"
        '#include "sim/builtin_profiles.h"\n\n'
        "namespace voda::sim {\n\n"
        "std::string_view BuiltinProfilesCsv() {\n"
        '  return R"csv(' + table.replace(",1.000\n", ",1\n") + ')csv";\n'
        "}\n\n}  // namespace voda::sim\n")


if __name__ == "__main__":
    main()
