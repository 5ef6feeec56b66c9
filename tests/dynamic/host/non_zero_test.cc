#include <algorithm>
#include <limits>

#include "dynamic/host/host_node.h"

namespace collage::dynamic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor non_zero(const Tensor& data) { return HostNode("NonZero").run({data})[0]; }

TEST(NonZero, CasesOfTheSuite) { EXPECT_EQ(check_suite("nonzero"), 1); }

// Ones scattered to the places found are where the data is not zero, and the places ascend.
TEST(NonZero, ScatteredBackIsTheDataOfEveryType) {
  std::mt19937 random(1);
  for (const DType dtype : all_dtypes())
    for (const Shape& shape : {Shape{7}, {5, 9}, {2, 1, 33}, {3, 4, 5, 2}, {1, 1, 1}}) {
      SCOPED_TRACE(std::string(dtype_name(dtype)) + shape_to_string(shape));
      const Tensor data = small_integers(dtype, shape, -1, 2, random);
      const Tensor places = non_zero(data);
      ASSERT_EQ(places.rank(), 2);
      ASSERT_EQ(places.shape()[0], data.rank());
      std::vector<int64_t> scattered(static_cast<size_t>(data.size()), 0), order;
      const int64_t count = places.shape()[1];
      for (int64_t i = 0; i < count; ++i) {
        int64_t flat = 0;
        for (int64_t axis = 0; axis < data.rank(); ++axis) {
          const int64_t at = places.data<int64_t>()[axis * count + i];
          ASSERT_GE(at, 0);
          ASSERT_LT(at, shape[static_cast<size_t>(axis)]);
          flat = flat * shape[static_cast<size_t>(axis)] + at;
        }
        scattered[static_cast<size_t>(flat)] = 1;
        order.push_back(flat);
      }
      EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
      EXPECT_EQ(std::adjacent_find(order.begin(), order.end()), order.end());
      for (int64_t i = 0; i < data.size(); ++i)
        EXPECT_EQ(scattered[static_cast<size_t>(i)], data.element_as_double(i) != 0) << i;
    }
}

TEST(NonZero, SignedZerosNanAndExtremes) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16})
    EXPECT_THAT(integers(non_zero(as_dtype(dtype, {4}, {-0.0, nan, 0.0, -1}))), ElementsAre(1, 3));
  EXPECT_THAT(integers(non_zero(Tensor::from<int64_t>(
                  {3}, {std::numeric_limits<int64_t>::min(), 0, int64_t{1} << 62}))),
              ElementsAre(0, 2));
  EXPECT_THAT(integers(non_zero(Tensor::from<int8_t>({2}, {-128, 0}))), ElementsAre(0));
}

TEST(NonZero, ScalarsAndEmptyShapes) {
  EXPECT_EQ(non_zero(Tensor::scalar<float>(3)).shape(), (Shape{1, 1}));
  EXPECT_EQ(non_zero(Tensor::scalar<float>(0)).shape(), (Shape{1, 0}));
  EXPECT_EQ(non_zero(Tensor::zeros(DType::kFloat32, {3, 0})).shape(), (Shape{2, 0}));
  EXPECT_EQ(non_zero(Tensor::zeros(DType::kBool, {0, 5, 2})).shape(), (Shape{3, 0}));
  EXPECT_EQ(non_zero(Tensor::zeros(DType::kInt32, {2, 3})).shape(), (Shape{2, 0}));
  EXPECT_EQ(non_zero(Tensor::empty(DType::kInt8, {0, int64_t{1} << 61})).shape(), (Shape{2, 0}));
}

TEST(NonZero, RefusesOtherNodes) {
  const Tensor data = Tensor::zeros(DType::kFloat32, {2});
  EXPECT_THAT(HostNode("NonZero").error({}), HasSubstr("0 inputs"));
  EXPECT_THAT(HostNode("NonZero").error({data, data}), HasSubstr("2 inputs"));
  EXPECT_THAT(HostNode("NonZero").error({Tensor()}), HasSubstr("input 0 is missing"));
  EXPECT_THAT(HostNode("NonZero", 2).error({data}), HasSubstr("2 outputs"));
  EXPECT_THAT(HostNode("NonZero").error({data}, 8), HasSubstr("new in version 9"));
}

TEST(HostOperators, AreThoseWhoseShapesDependOnValues) {
  for (const char* domain : {"", "ai.onnx"})
    for (const char* op : {"NonZero", "NonMaxSuppression", "Unique", "Compress"})
      EXPECT_TRUE(is_host_operator(domain, op)) << op;
  EXPECT_TRUE(is_host_operator("com.microsoft", "Unique"));
  EXPECT_FALSE(is_host_operator("com.microsoft", "NonZero"));
  EXPECT_FALSE(is_host_operator("ai.onnx.ml", "Unique"));
  EXPECT_FALSE(is_host_operator("", "Relu"));
  ::onnx::NodeProto relu;
  relu.set_op_type("Relu");
  EXPECT_EQ(run_host_operator(relu, 17, {}).status().code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace collage::dynamic
