#include "measure/reference_cache.h"

#include <gtest/gtest.h>

#include "planted_kernel.h"

namespace collage {
namespace {

// A function of 8 bytes an element, with its result.
std::string text_of(int64_t elements) { return canonical_text(testing::unary("tanh", {elements})); }

std::shared_ptr<ReferenceResults> ask(ReferenceCache& cache, int64_t elements) {
  auto results = cache.results_of(text_of(elements));
  EXPECT_TRUE(results.ok()) << results.status().to_string();
  return results.ok() ? *results : nullptr;
}

TEST(ReferenceCache, KeepsWhatWasAskedForLast) {
  ReferenceCache cache(8 * 250);
  const auto first = ask(cache, 100), second = ask(cache, 101);
  EXPECT_EQ(ask(cache, 100), first);
  EXPECT_EQ(first->errors.expected().size(), 1u);
  ask(cache, 102);  // the second is the one that was not asked for since
  EXPECT_EQ(ask(cache, 100), first);
  const auto again = ask(cache, 101);
  EXPECT_NE(again, second);
  EXPECT_EQ(again->errors.expected()[0].data<float>()[100],
            second->errors.expected()[0].data<float>()[100]);
}

TEST(ReferenceCache, DoesNotKeepWhatIsTooLarge) {
  ReferenceCache cache(8 * 50);
  EXPECT_NE(ask(cache, 100), ask(cache, 100));
  EXPECT_EQ(ask(cache, 10), ask(cache, 10));
}

TEST(ReferenceCache, ATextThatIsNoFunctionIsAnError) {
  ReferenceCache cache(1000);
  EXPECT_FALSE(cache.results_of("fn (%x").ok());
}

}  // namespace
}  // namespace collage
