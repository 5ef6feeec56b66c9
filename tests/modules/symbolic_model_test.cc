// Models over symbols by the public headers alone.
#include <collage/builder.h>
#include <collage/collage.h>
#include <collage/symbolic.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Result<Model> doubled_rows(const SymbolicModel::Sizes& sizes) {
  const int64_t n = sizes.at("n");
  if (n > 1000) return Status(ErrorCode::kBadModel, "too many rows");
  auto x = Expression::parameter("x", DType::kFloat32, {n, 3}).value();
  ModuleBuilder builder;
  EXPECT_TRUE(builder.begin("main", {x}).ok());
  auto rows = builder.emit(*Expression::call("tile", {x}, {{"reps", Shape{2, 1}}})).value();
  const auto flat = Expression::call("reshape", {rows}, {{"newshape", Shape{6 * n}}});
  EXPECT_TRUE(builder.output(builder.emit(*flat).value()).ok());
  return builder.model();
}

TEST(SymbolicModel, IsWhatModelsOfEachSizeHaveInCommon) {
  const Result<SymbolicModel> made = SymbolicModel::generalise({"n"}, doubled_rows);
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  EXPECT_THAT(made->symbols(), ElementsAre("n"));
  EXPECT_THAT(made->inputs().at(0).dims, ElementsAre("n", "3"));
  EXPECT_THAT(made->outputs().at(0).dims, ElementsAre("6 * n"));
  EXPECT_THAT(made->text(), HasSubstr("newshape=[6 * n]"));
  EXPECT_EQ(made->at({{"n", 7}}, false)->inputs().at(0).shape, (Shape{7, 3}));
  EXPECT_EQ(*model_text(*made->at({{"n", 7}}, false)), *model_text(*doubled_rows({{"n", 7}})));
  EXPECT_THAT(made->at({}).status().to_string(), HasSubstr("symbol n has no value"));
}

}  // namespace
}  // namespace collage
