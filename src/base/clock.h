// Clocks, for what faces the outside world. Whatever decides takes the time as an argument: the folders from
// model to codec do not include this file (tests/architecture_test.sh).
#pragma once

namespace voda {

// Seconds since 1970.
double WallNow();

// The time that scheduling lives in, in seconds since 1970: the wall clock as it was when this process first
// asked, and what has passed since. It does not jump when the machine's clock is set, so that nothing waits
// for a day and no time is counted twice; what is written down with it is wall time.
double SteadyWallNow();

// Seconds since this machine started, also while it slept. Times of two starts of the machine cannot be
// compared.
double UptimeNow();

}  // namespace voda
