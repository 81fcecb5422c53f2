// Goal: claims and volumes that are deleted go when they are in use no more, and not before.
// Method: objects made by hand, each row one situation, and what is planned of it.
#include "controllers/protection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "controllers/seen_objects.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kDeleted =
    R"(,"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["x/y","kubernetes.io/pv{}-protection"])";

class Situation : public SeenObjects {
 public:
  void SeePod(const std::string& claim, const std::string& node) {
    See(api::KindId::kPod, "p", "",
        fmt::format(R"(,"spec":{{"nodeName":"{}","containers":[],"volumes":[{{"name":"v",)"
                    R"("persistentVolumeClaim":{{"claimName":"{}"}}}}]}})",
                    node, claim));
  }
  // What is written of a claim, or of a volume.
  std::string Claim(const std::string& metadata) {
    return Shown(See(api::KindId::kPersistentVolumeClaim, "c", metadata, ""));
  }
  std::string Volume(const std::string& metadata, const std::string& phase) {
    return Shown(See(api::KindId::kPersistentVolume, "v", metadata,
                     fmt::format(R"(,"spec":{{}},"status":{{"phase":"{}"}})", phase)));
  }

 private:
  std::string Shown(Slot slot) {
    const Plan plan = PlanProtection(objects, slot);
    return plan.writes.empty() ? "nothing" : plan.writes.at(0).metadata;
  }
};

TEST(ProtectionTest, AClaimWaitsForPodsOnNodes) {
  const std::string deleted = fmt::format(kDeleted, "c");
  Situation now;
  EXPECT_EQ(now.Claim(R"(,"finalizers":["kubernetes.io/pvc-protection"])"), "nothing")
      << "not deleted";
  const std::string without = now.Claim(deleted);
  EXPECT_NE(without, "nothing");
  EXPECT_NE(without.find("x/y"), std::string::npos) << without;
  EXPECT_EQ(without.find("protection"), std::string::npos) << without;
  now.SeePod("c", "n");
  EXPECT_EQ(now.Claim(deleted), "nothing");
  now.SeePod("other", "n");
  EXPECT_EQ(now.Claim(deleted), without);
  now.SeePod("c", "");
  EXPECT_EQ(now.Claim(deleted), without);
}

TEST(ProtectionTest, AVolumeWaitsForItsClaim) {
  const std::string deleted = fmt::format(kDeleted, "");
  Situation now;
  EXPECT_EQ(now.Volume("", "Available"), "nothing");
  EXPECT_EQ(now.Volume(deleted, "Bound"), "nothing");
  EXPECT_NE(now.Volume(deleted, "Released"), "nothing");
}

}  // namespace
}  // namespace berth::controllers
