// Every kind of kernel that native has is listed for some function, and built.
#include "backend/native/kernel_table.h"

#include <gmock/gmock.h>

#include <set>

#include "backend/native/codegen/vector_width.h"
#include "backend/native/integers/dot_products.h"
#include "backend/native/kernel_variants.h"
#include "backend/native/native_backend.h"
#include "check.h"
#include "ops/cases.h"
#include "ops/registry.h"

namespace collage::native {
namespace {

Function product_of(Shape data, Shape weight) {
  const Expr x = var("x", std::move(data));
  return function({x}, call("nn.matmul", {x, weights(std::move(weight))}));
}

Function convolution_of(const Expr& x, const Expr& image, Shape weight, int64_t groups = 1) {
  return function({x}, call("nn.conv2d", {image, weights(std::move(weight))},
                            {{"padding", Ints{1, 1, 1, 1}}, {"groups", groups}}));
}

std::vector<Function> functions() {
  register_all_ops();
  std::vector<Function> all;
  for (const OpCase& op_case : op_cases())
    if (auto built = build_case(op_case, 3); built.ok()) all.push_back(built->function);
  all.push_back(product_of({1, 1024}, {1024, 512}));  // of few rows
  all.push_back(product_of({64, 512}, {512, 256}));
  const Expr image = var("x", {1, 64, 24, 24}), rows = var("x", {8, 16});
  all.push_back(convolution_of(image, image, {64, 64, 3, 3}));
  all.push_back(convolution_of(image, image, {64, 4, 3, 3}, 16));
  const Expr enlarged = call("image.resize2d", {image},
                             {{"size", Ints{48, 48}},
                              {"method", std::string("nearest_neighbor")},
                              {"coordinate_transformation_mode", std::string("asymmetric")},
                              {"rounding_method", std::string("floor")}});
  all.push_back(convolution_of(image, enlarged, {64, 64, 3, 3}));
  all.push_back(function({rows}, program_call({rows}, R"(program {
    param A: float32[8, 16];
    stage M[i:8] = max(k:16) A[i, k];
    result C[i:8, j:16] = A[i, j] - M[i];
  })")));
  return all;
}

TEST(KernelTable, EveryRowIsListedAndSaysWhatItsVariantsDo) {
  std::set<std::string> listed;
  for (const int width : {8, 16}) {
    const AssumedVectorWidth assumed(width);
    for (const Function& f : functions())
      for (const bool over_symbols : {false, true}) {
        const auto variants = kernel_variants(f, RoundingLimit::kAny, over_symbols, 2);
        if (!variants.ok()) continue;
        for (const Variant& variant : *variants) {
          const auto [kind, schedule] = find_kind(variant.schedule);
          ASSERT_NE(kind, nullptr) << variant.schedule;
          const KernelRow& row = kind->row;
          listed.insert(row.name);
          EXPECT_EQ(variant.work, row.work) << variant.name;
          EXPECT_EQ(variant.spreads_nan, row.spreads_nan) << variant.name;
          EXPECT_EQ(variant.rounding.limit(), row.rounding.limit()) << variant.name;
          EXPECT_EQ(variant.rounding.sums, row.rounding.sums) << variant.name;
        }
      }
  }
  std::set<std::string> missing;
  for (const KernelKind& kind : kernel_table()) {
    if (kind.row.name == kIntegers && !multiplies_integers_faster()) continue;
    if (kind.row.name == kDots && machine_intrinsics().empty()) continue;
    if (listed.count(kind.row.name) == 0) missing.insert(kind.row.name);
  }
  EXPECT_THAT(missing, ::testing::IsEmpty());
}

TEST(KernelTable, ASchedulesRowIsFound) {
  const auto [kind, schedule] = find_kind("winograd4: 3");
  ASSERT_NE(kind, nullptr);
  EXPECT_EQ(kind->row.name, "winograd4");
  EXPECT_EQ(schedule, "3");
  for (const char* none : {"", "winograd4", "winograd5: 3", ": 3", "3"})
    EXPECT_EQ(find_kind(none).first, nullptr) << none;
  const Function f = product_of({4, 8}, {8, 16});
  for (const char* wrong : {"", "cake: 1", "product: 99", "product: ", "stages: cake"}) {
    Variant variant = Variant::plain("wrong", f);
    variant.schedule = wrong;
    EXPECT_FALSE(make_native_backend()->compile(f, variant, Target{"native", {}, {}}, {2, ""}).ok())
        << wrong;
  }
}

}  // namespace
}  // namespace collage::native
