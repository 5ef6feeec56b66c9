// The text of targets.
#include "ir/target.h"

#include <gtest/gtest.h>

namespace collage {
namespace {

TEST(Target, TextHoldsAllThatTellsTargetsApart) {
  for (const char* text :
       {"native", "native -a=1 -b=x", "native -device=gpu", "native -device=gpu:1",
        "native -device=cpu:1", "native -device=cpu:1 -cores=0-1+6",
        "native -device=gpu:1 -memory_scope=shared -a=1", "native -memory_scope=global"}) {
    const Result<Target> target = Target::parse(text);
    ASSERT_TRUE(target.ok()) << text << ": " << target.status().to_string();
    EXPECT_EQ(target->to_string(), text);
    EXPECT_EQ(Target::parse(target->to_string()).value(), *target);
  }
  EXPECT_EQ(Target::parse("t -b=2 -device=cpu:0 -a=1").value().to_string(), "t -a=1 -b=2");
}

TEST(Target, TextThatIsNoneIsRefused) {
  const auto message = [](const char* text) { return Target::parse(text).status().to_string(); };
  EXPECT_EQ(message(""), "empty target");
  EXPECT_EQ(message("t x"), "target 't x': expected -option=value, found 'x'");
  EXPECT_EQ(message("t \x01"), "target 't ?': only printable ASCII");
  for (const char* device : {"gpu:", "gpu:x", "gpu:-1", "gpu:1x", ":1", "gpu:99999999999", ""})
    EXPECT_EQ(message((std::string("t -device=") + device).c_str()),
              "target 't -device=" + std::string(device) + "': '" + device +
                  "' is no device: expected NAME or NAME:NUMBER");
}

}  // namespace
}  // namespace collage
