#include "service/query.h"

#include <gtest/gtest.h>

namespace voda {
namespace {

TEST(Query, UnknownParametersAreRefusedWithThoseThereAre) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/api/v1/jobs";
  EXPECT_FALSE(RefuseUnknown(request, {}));
  request.query = {{"dryrun", "true"}};
  const auto refused = RefuseUnknown(request, {"dry_run", "namespace"});
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 400);
  EXPECT_EQ(refused->message,
            "\"dryrun\" is no parameter of POST /api/v1/jobs, which takes dry_run, namespace");
  EXPECT_NE(RefuseUnknown(request, {})->message.find("takes none"), std::string::npos);
  request.query = {{"dry_run", "true"}, {"namespace", "a"}};
  EXPECT_FALSE(RefuseUnknown(request, {"dry_run", "namespace"}));
}

}  // namespace
}  // namespace voda
