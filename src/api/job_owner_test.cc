// Goal: what a Job left behind is its still, and what others own is not. Method: owners and labels
// as objects have them.
#include "api/job_owner.h"

#include <gtest/gtest.h>

namespace berth::api {
namespace {

TEST(JobOwnerTest, WhoControlsGoesBeforeWhatLabelsTell) {
  StringMap labels;
  std::vector<OwnerReference> owners;
  EXPECT_EQ(JobUidOf(owners, labels), "");
  labels = {{"kueue.x-k8s.io/job-uid", "u1"}};
  EXPECT_EQ(JobUidOf(owners, labels), "u1");
  labels = {{"batch.kubernetes.io/controller-uid", "u2"}, {"kueue.x-k8s.io/job-uid", "u1"}};
  EXPECT_EQ(JobUidOf(owners, labels), "u2");
  owners = {{.api_version = "apps/v1", .kind = "ReplicaSet", .name = "r", .uid = "u3"}};
  EXPECT_EQ(JobUidOf(owners, labels), "") << "somebody owns it";
  owners.front().kind = "Job";
  owners.front().controller = true;
  EXPECT_EQ(JobUidOf(owners, labels), "");
  owners.front().api_version = "batch.volcano.sh/v1alpha1";
  EXPECT_EQ(JobUidOf(owners, labels), "");
  owners.front().api_version = "batch/v1";
  EXPECT_EQ(JobUidOf(owners, labels), "u3");
  owners.insert(owners.begin(), {.api_version = "batch/v1", .kind = "Job", .uid = "u4"});
  EXPECT_EQ(JobUidOf(owners, labels), "u3") << "one that doesn't control it";
}

}  // namespace
}  // namespace berth::api
