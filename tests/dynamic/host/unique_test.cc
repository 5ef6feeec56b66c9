#include <algorithm>
#include <limits>

#include "dynamic/host/host_node.h"

namespace collage::dynamic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Slices = std::vector<std::vector<double>>;

TEST(Unique, CasesOfTheSuite) { EXPECT_EQ(check_suite("unique"), 5); }

// The slices along an axis of a tensor of rank 3, each row-major.
Slices slices_of(const Tensor& tensor, size_t axis) {
  const Shape& shape = tensor.shape();
  Slices slices(static_cast<size_t>(shape[axis]));
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const int64_t index[] = {i / (shape[1] * shape[2]), i / shape[2] % shape[1], i % shape[2]};
    slices[static_cast<size_t>(index[axis])].push_back(tensor.element_as_double(i));
  }
  return slices;
}

// By a search through all that were seen before.
void expect_unique(const Slices& slices, const Slices& distinct, const Tensors& results,
                   bool sorted) {
  Slices seen;
  std::vector<int64_t> first, counts;
  for (size_t i = 0; i < slices.size(); ++i) {
    const auto at = std::find(seen.begin(), seen.end(), slices[i]) - seen.begin();
    if (static_cast<size_t>(at) == seen.size()) {
      seen.push_back(slices[i]);
      first.push_back(static_cast<int64_t>(i));
      counts.push_back(0);
    }
    ++counts[static_cast<size_t>(at)];
  }
  std::vector<size_t> order(seen.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (sorted)
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return seen[a] < seen[b]; });
  ASSERT_EQ(distinct.size(), seen.size());
  ASSERT_EQ(results.size(), 4u);
  const std::vector<int64_t> firsts = integers(results[1]), inverse = integers(results[2]),
                             numbers = integers(results[3]);
  ASSERT_EQ(firsts.size(), seen.size());
  ASSERT_EQ(numbers.size(), seen.size());
  ASSERT_EQ(inverse.size(), slices.size());
  for (size_t i = 0; i < order.size(); ++i) {
    EXPECT_EQ(distinct[i], seen[order[i]]) << i;
    EXPECT_EQ(firsts[i], first[order[i]]) << i;
    EXPECT_EQ(numbers[i], counts[order[i]]) << i;
  }
  for (size_t i = 0; i < slices.size(); ++i)
    EXPECT_EQ(distinct[static_cast<size_t>(inverse[i])], slices[i]) << i;
}

TEST(Unique, SlicesOfEveryTypeAndAxis) {
  std::mt19937 random(3);
  for (const DType dtype : all_dtypes())
    for (const bool sorted : {false, true})
      for (int64_t axis = -3; axis < 3; ++axis) {
        const auto at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
        SCOPED_TRACE(std::string(dtype_name(dtype)) + " " + std::to_string(axis));
        Shape shape = {2, 1, 2};
        shape[at] = 12;
        const Tensor data = small_integers(dtype, shape, -1, 1, random);
        const Tensors results =
            HostNode("Unique", 4).integer("axis", axis).integer("sorted", sorted).run({data});
        ASSERT_EQ(results[0].rank(), 3);
        EXPECT_EQ(results[0].dtype(), dtype);
        expect_unique(slices_of(data, at), slices_of(results[0], at), results, sorted);
      }
}

TEST(Unique, ElementsOfEveryType) {
  std::mt19937 random(4);
  for (const DType dtype : all_dtypes())
    for (const bool sorted : {false, true}) {
      SCOPED_TRACE(dtype_name(dtype));
      const Tensor data = small_integers(dtype, {5, 8}, -9, 9, random);
      const Tensors results = HostNode("Unique", 4).integer("sorted", sorted).run({data});
      ASSERT_EQ(results[0].rank(), 1);
      expect_unique(slices_of(data.reshaped({40, 1, 1}), 0),
                    slices_of(results[0].reshaped({results[0].size(), 1, 1}), 0), results, sorted);
    }
}

TEST(Unique, IsSortedByDefault) {
  const Tensors results = HostNode("Unique", 4).run({Tensor::from<int64_t>({4}, {7, -3, 7, 5})});
  EXPECT_THAT(integers(results[0]), ElementsAre(-3, 5, 7));
  EXPECT_THAT(integers(results[1]), ElementsAre(1, 3, 0));
  EXPECT_THAT(integers(results[2]), ElementsAre(2, 0, 2, 1));
  EXPECT_THAT(integers(results[3]), ElementsAre(1, 1, 2));
}

TEST(Unique, LargeIntegersDiffer) {
  const int64_t large = int64_t{1} << 60;
  EXPECT_THAT(integers(HostNode("Unique").run(
                  {Tensor::from<int64_t>({3}, {large + 1, large, large + 1})})[0]),
              ElementsAre(large, large + 1));
  const Tensor top = HostNode("Unique").run(
      {Tensor::from<uint64_t>({2}, {std::numeric_limits<uint64_t>::max(), 1})})[0];
  EXPECT_EQ(top.data<uint64_t>()[0], 1u);
  EXPECT_EQ(top.data<uint64_t>()[1], std::numeric_limits<uint64_t>::max());
}

TEST(Unique, NanAreEqualAndLastAndZerosOfBothSignsAreEqual) {
  const double nan = std::numeric_limits<double>::quiet_NaN(),
               infinity = std::numeric_limits<double>::infinity();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const Tensors results =
        HostNode("Unique", 4).run({as_dtype(dtype, {7}, {nan, -0.0, infinity, nan, 0.0, -1, nan})});
    EXPECT_THAT(integers(results[1]), ElementsAre(5, 1, 2, 0));
    EXPECT_THAT(integers(results[3]), ElementsAre(1, 2, 1, 3));
    EXPECT_TRUE(std::signbit(results[0].element_as_double(1)));
    EXPECT_TRUE(std::isnan(results[0].element_as_double(3)));
  }
  const Tensors rows =
      HostNode("Unique", 4)
          .integer("axis", 0)
          .run({as_dtype(DType::kFloat32, {4, 2}, {nan, 1, 0, nan, nan, 0, 0, nan})});
  EXPECT_THAT(integers(rows[1]), ElementsAre(1, 2, 0));
}

TEST(Unique, OfNothing) {
  const Tensors none = HostNode("Unique", 4).run({Tensor::zeros(DType::kFloat32, {0, 3})});
  for (const Tensor& result : none) EXPECT_EQ(result.shape(), (Shape{0}));
  const Tensors rows =
      HostNode("Unique", 4).integer("axis", 0).run({Tensor::zeros(DType::kFloat32, {0, 3})});
  EXPECT_EQ(rows[0].shape(), (Shape{0, 3}));
  const Tensors columns =
      HostNode("Unique", 4).integer("axis", 1).run({Tensor::zeros(DType::kFloat32, {0, 3})});
  EXPECT_EQ(columns[0].shape(), (Shape{0, 1}));
  EXPECT_THAT(integers(columns[2]), ElementsAre(0, 0, 0));
  EXPECT_THAT(integers(columns[3]), ElementsAre(3));
}

TEST(Unique, RefusesOtherNodes) {
  const Tensor data = Tensor::zeros(DType::kFloat32, {2});
  EXPECT_THAT(HostNode("Unique").integer("axis", 1).error({data}), HasSubstr("axis 1 is out"));
  EXPECT_THAT(HostNode("Unique").integer("axis", INT64_MAX).error({data}), HasSubstr("is out"));
  EXPECT_THAT(HostNode("Unique").integer("sorted", 2).error({data}), HasSubstr("not 0 or 1"));
  EXPECT_THAT(HostNode("Unique", 5).error({data}), HasSubstr("5 outputs"));
  EXPECT_THAT(HostNode("Unique").error({data}, 10), HasSubstr("new in version 11"));
  ::onnx::NodeProto node;
  node.set_op_type("Unique");
  auto* axis = node.add_attribute();
  axis->set_name("axis");
  axis->set_type(::onnx::AttributeProto::INT);
  axis->set_i(1);
  const Tensor slices = Tensor::empty(DType::kInt8, {0, int64_t{1} << 50});
  EXPECT_EQ(run_host_operator(node, 17, {slices}).status().code(), ErrorCode::kUnsupported);
}

TEST(MicrosoftUnique, IsInOrderOfAppearance) {
  const auto node = HostNode("Unique", 3).domain("com.microsoft");
  const Tensors results = node.run({Tensor::from<float>({5}, {2, 1, 1, 3, 2})});
  EXPECT_EQ(results[0].element_as_double(0), 2);
  EXPECT_EQ(results[0].element_as_double(1), 1);
  EXPECT_EQ(results[0].element_as_double(2), 3);
  EXPECT_THAT(integers(results[1]), ElementsAre(0, 1, 1, 2, 0));
  EXPECT_THAT(integers(results[2]), ElementsAre(2, 2, 1));
  EXPECT_THAT(node.error({Tensor::zeros(DType::kInt64, {2})}), HasSubstr("int64, not float32"));
  EXPECT_THAT(node.error({Tensor::zeros(DType::kFloat32, {2, 1})}), HasSubstr("not a list"));
}

}  // namespace
}  // namespace collage::dynamic
