// Options of the policy Price; the rule is in price.cc.
#pragma once

namespace voda {

struct PriceOptions {
  double c = 2;  // how dear a GPU is: a small c favours the job at hand, a large one the throughput of all
  double ratio = 1.05;  // a larger size must be at least this much faster than the best smaller one
  double stick = 0.7;  // the GPU-time left of a running job counts as this share, against needless preemption
  double guard = 4;    // a job later than this many times its fair time goes to the front
  // A job of which nothing is measured may take one node of what is spare, and twice as much for each time so
  // many seconds long that it has run; 0: at once whatever it may use.
  double reach = 4 * 3600;
};

}  // namespace voda
