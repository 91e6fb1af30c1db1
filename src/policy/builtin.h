// Factories of the policies that registry.cc lists.
#pragma once

#include <memory>

#include "policy/las.h"
#include "policy/policy.h"
#include "policy/price.h"

namespace voda {

std::unique_ptr<Policy> MakeFifo();
std::unique_ptr<Policy> MakeElasticFifo();
std::unique_ptr<Policy> MakeSrjf();
std::unique_ptr<Policy> MakeElasticSrjf();
std::unique_ptr<Policy> MakeTiresias(LasOptions options);
std::unique_ptr<Policy> MakeElasticTiresias(LasOptions options, int compaction);
std::unique_ptr<Policy> MakeFfdlOptimizer();
std::unique_ptr<Policy> MakeAfsL();
std::unique_ptr<Policy> MakePrice(PriceOptions options);

}  // namespace voda
