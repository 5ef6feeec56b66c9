#include "dynamic/host/host_node.h"

namespace collage::dynamic {
namespace {

using ::testing::HasSubstr;

Tensor condition(const std::vector<double>& values) {
  return as_dtype(DType::kBool, {static_cast<int64_t>(values.size())}, values);
}

TEST(Compress, CasesOfTheSuite) { EXPECT_EQ(check_suite("compress"), 4); }

// Element by element, by index.
TEST(Compress, OfEveryTypeAndAxis) {
  std::mt19937 random(2);
  const Shape shape = {3, 4, 5};
  for (const DType dtype : all_dtypes())
    for (int64_t axis = -3; axis < 3; ++axis) {
      const auto at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(axis));
      const Tensor data = small_integers(dtype, shape, -50, 50, random);
      // One shorter than the axis: the last slice is dropped.
      const Tensor chosen = small_integers(DType::kBool, {shape[at] - 1}, 0, 1, random);
      const Tensor result = HostNode("Compress").integer("axis", axis).run({data, chosen})[0];
      std::vector<double> expected;
      int64_t kept = 0;
      for (int64_t i = 0; i < chosen.size(); ++i) kept += chosen.element_as_int64(i);
      for (int64_t i = 0; i < data.size(); ++i) {
        const int64_t index[] = {i / 20, i / 5 % 4, i % 5};
        if (index[at] < chosen.size() && chosen.element_as_int64(index[at]) != 0)
          expected.push_back(data.element_as_double(i));
      }
      Shape expected_shape = shape;
      expected_shape[at] = kept;
      ASSERT_EQ(result.shape(), expected_shape);
      ASSERT_EQ(result.dtype(), dtype);
      for (int64_t i = 0; i < result.size(); ++i)
        EXPECT_EQ(result.element_as_double(i), expected[static_cast<size_t>(i)]) << i;
    }
}

TEST(Compress, WithoutAnAxisOfAllElements) {
  const Tensor data = as_dtype(DType::kInt16, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor result = HostNode("Compress").run({data, condition({0, 1, 0, 1, 1})})[0];
  ASSERT_EQ(result.shape(), (Shape{3}));
  EXPECT_EQ(result.element_as_int64(0), 2);
  EXPECT_EQ(result.element_as_int64(1), 4);
  EXPECT_EQ(result.element_as_int64(2), 5);
  EXPECT_EQ(HostNode("Compress").run({Tensor::scalar<float>(1), condition({1})})[0].shape(),
            (Shape{1}));
}

TEST(Compress, OfNothing) {
  const Tensor empty = Tensor::zeros(DType::kFloat32, {0, 3});
  EXPECT_EQ(HostNode("Compress").run({empty, condition({})})[0].shape(), (Shape{0}));
  EXPECT_EQ(HostNode("Compress").integer("axis", 1).run({empty, condition({1, 0, 1})})[0].shape(),
            (Shape{0, 2}));
  EXPECT_EQ(HostNode("Compress")
                .integer("axis", 0)
                .run({Tensor::zeros(DType::kInt8, {3, 2}), condition({0, 0, 0})})[0]
                .shape(),
            (Shape{0, 2}));
}

TEST(Compress, RefusesOtherNodes) {
  const Tensor data = Tensor::zeros(DType::kFloat32, {2, 3});
  const auto with_axis = [](int64_t axis) { return HostNode("Compress").integer("axis", axis); };
  EXPECT_THAT(with_axis(2).error({data, condition({1})}), HasSubstr("axis 2 is out of range"));
  EXPECT_THAT(with_axis(INT64_MIN).error({data, condition({1})}), HasSubstr("out of range"));
  EXPECT_THAT(with_axis(0).error({Tensor::scalar<float>(1), condition({1})}),
              HasSubstr("out of range for rank 0"));
  EXPECT_THAT(with_axis(0).error({data, condition({1, 0, 1})}),
              HasSubstr("a condition of 3 elements for 2"));
  EXPECT_THAT(with_axis(0).error({data, data}), HasSubstr("not a list of bool"));
  EXPECT_THAT(with_axis(0).error({data, Tensor::zeros(DType::kInt8, {1})}),
              HasSubstr("not a list of bool"));
  EXPECT_THAT(with_axis(0).error({data}), HasSubstr("1 inputs"));
  EXPECT_THAT(HostNode("Compress").real("axis", 0).error({data, condition({1})}),
              HasSubstr("attribute 'axis' has type FLOAT"));
}

}  // namespace
}  // namespace collage::dynamic
