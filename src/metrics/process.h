// What the kernel says about this process, read at each scrape.
#pragma once

namespace voda {

struct ProcessFacts {
  double cpu_seconds = 0;
  double resident_bytes = 0;
  double virtual_bytes = 0;
  double open_fds = 0;
  double max_fds = 0;
  double start_time = 0;  // seconds since 1970
};

// A fact that cannot be read stays 0.
ProcessFacts ReadProcessFacts();

}  // namespace voda
