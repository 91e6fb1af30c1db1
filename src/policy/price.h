// Options of the policy Price; the rule is in price.cc.
#pragma once

namespace voda {

struct PriceOptions {
  double c = 1.5;       // how dear a GPU is: small favours the job at hand, large the throughput of all
  double ratio = 1.05;  // a larger size must be at least this much faster than the best smaller one
  double stick =
      0.7;           // a running job's claim counts as this share of what it is, against needless preemption
  double guard = 4;  // a job later than this many times its fair time goes to the front
};

}  // namespace voda
