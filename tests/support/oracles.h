// Oracles: the eight algorithms as slow, direct transcriptions of their rules, written from the rules and not
// from src/policy. They share nothing with the policies but the model's values; what they say is what is
// right.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/snapshot.h"

namespace voda::testing {

struct OracleAnswer {
  std::map<std::string, int> workers;  // every job of the snapshot
  std::vector<std::string> order;      // the order of admission, without the jobs set aside
  std::vector<std::string> promoted;   // sorted
};

struct OracleOptions {
  std::vector<double> thresholds = {3600};
  double knob = 8;
  int compaction = 10;
};

// GPUs of ready nodes and what is held on cordoned ones, no more than these have.
int OracleCapacity(const Snapshot& snapshot);
// Whether the job's minimum can be seated on the empty cluster.
bool OracleSeatable(const Snapshot& snapshot, const Job& job);
// Whether policies consider the job: nobody set it aside and its minimum can be seated.
bool OracleTakesPart(const Snapshot& snapshot, const Job& job);

OracleAnswer OracleFifo(const Snapshot& snapshot);
OracleAnswer OracleElasticFifo(const Snapshot& snapshot);
OracleAnswer OracleSrjf(const Snapshot& snapshot);
OracleAnswer OracleElasticSrjf(const Snapshot& snapshot);
OracleAnswer OracleTiresias(const Snapshot& snapshot, const OracleOptions& options = {});
OracleAnswer OracleElasticTiresias(const Snapshot& snapshot, const OracleOptions& options = {});
OracleAnswer OracleAfsL(const Snapshot& snapshot);

// FfDL by enumeration of every combination of allowed sizes: small snapshots only. Sums are compared as they
// are, so its choice among equal sums is the rule's only for speed-ups whose sums are exact (dyadic); else
// look at `unique`.
struct FfdlAnswer {
  OracleAnswer answer;
  double value = 0;
  bool unique = true;  // no other combination comes within 1e-6 of the value
};
FfdlAnswer OracleFfdlByEnumeration(const Snapshot& snapshot);
// The same by a complete table over jobs and GPUs: for speed-ups whose sums are exact, any number of jobs.
FfdlAnswer OracleFfdlByTable(const Snapshot& snapshot);

// Sum of the speed-ups of an allocation by name.
double SumOfSpeedups(const Snapshot& snapshot, const std::map<std::string, int>& workers);

}  // namespace voda::testing
