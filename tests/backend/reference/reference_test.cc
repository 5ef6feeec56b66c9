// The reference backend: its rule takes every call, its kernels agree with the interpreter, its
// conversions move every element and zero the padding.
#include "backend/reference/reference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ops/cases.h"
#include "ops/interpreter.h"
#include "ops/registry.h"

namespace collage {
namespace {

class ReferenceBackendTest : public ::testing::Test {
 protected:
  void SetUp() override { register_all_ops(); }

  std::vector<Tensor> run(const Function& function, std::vector<Tensor> inputs) {
    Result<std::vector<Variant>> variants = backend_->variants(function, target_, {});
    if (!variants || variants->size() != 1) {
      ADD_FAILURE() << variants.status().to_string();
      return {};
    }
    auto kernel = backend_->compile(function, (*variants)[0], target_, {});
    if (!kernel) {
      ADD_FAILURE() << kernel.status().to_string();
      return {};
    }
    std::vector<Tensor> outputs;
    std::vector<void*> in, out;
    for (Tensor& input : inputs) in.push_back(input.raw());
    for (const TensorType& leaf : function->result_type().leaves()) {
      outputs.push_back(Tensor::zeros(leaf.dtype, leaf.shape));
      out.push_back(outputs.back().raw());
    }
    Status status = (*kernel)->run({in.data(), out.data(), nullptr});
    EXPECT_TRUE(status.ok()) << status.to_string();
    return outputs;
  }

  void expect_interpreted(const Function& function, const std::vector<Tensor>& inputs,
                          const std::string& what) {
    std::vector<Tensor> actual = run(function, inputs);
    Result<std::vector<Tensor>> expected = interpret(function, inputs);
    ASSERT_TRUE(expected.ok()) << what << ": " << expected.status().to_string();
    ASSERT_EQ(actual.size(), expected->size()) << what;
    for (size_t i = 0; i < actual.size(); ++i)
      EXPECT_EQ(0, std::memcmp(actual[i].raw(), (*expected)[i].raw(), actual[i].bytes())) << what;
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
  Target target_{"reference", {}, {}};
};

Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
  Result<Expr> result = make_call(op, std::move(args), std::move(attrs));
  if (!result) ADD_FAILURE() << result.status().to_string();
  return *result;
}

TEST_F(ReferenceBackendTest, EveryOperatorsCasesAsSingleCallKernels) {
  for (const OpCase& op_case : op_cases()) {
    Result<OpCaseFunction> built = build_case(op_case, 1);
    ASSERT_TRUE(built.ok()) << op_case.to_string() << ": " << built.status().to_string();
    expect_interpreted(built->function, built->inputs, op_case.to_string());
  }
}

TEST_F(ReferenceBackendTest, CompositesTuplesAndSharedNodes) {
  TensorType type{{2, 6}, DType::kFloat32};
  Expr a = make_var("a", type), b = make_var("b", type), p = make_var("p", type);
  Function square = make_function({p}, call("multiply", {p, p}), {{"Composite", "square"}});
  Expr shared = *make_function_call(square, {call("add", {a, b})});
  Expr parts = call("split", {shared}, {{"indices_or_sections", int64_t{2}}, {"axis", int64_t{1}}});
  Expr flat = call("reshape", {*make_tuple_get_item(parts, 1)}, {{"newshape", Ints{6}}});
  Function f =
      make_function({a, b}, make_tuple({flat, shared, parts}), {{"Primitive", int64_t{1}}});
  expect_interpreted(f, random_inputs(f, 3), "composite");
}

TEST_F(ReferenceBackendTest, RuleTakesEveryCallAlone) {
  Expr x = make_var("x", TensorType{{4}, DType::kFloat32});
  Expr y = call("concatenate", {make_tuple({call("exp", {x}), x})});
  Function f = make_function({x}, call("add", {y, y}));
  auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"reference", backend_->partition_rule(target_), target_});
  DataflowGraph graph(f);
  std::vector<std::string> ops;
  for (const CandidatePartition& candidate : spec->rule->all_candidates(graph, spec)) {
    ops.push_back(candidate.sub_graph.ops_label(graph));
    Function function = candidate.function(graph);
    expect_interpreted(function, random_inputs(function, 4), ops.back());
  }
  EXPECT_THAT(ops, ::testing::ElementsAre("exp", "concatenate", "add"));
}

TEST_F(ReferenceBackendTest, RefusesOtherVariantsAndGlobalCalls) {
  TensorType type{{4}, DType::kFloat32};
  Expr x = make_var("x", type);
  Function f = make_function({x}, call("exp", {x}));
  Variant variant = Variant::plain("reference", f);
  variant.inputs[0].dtype = DType::kBFloat16;
  EXPECT_EQ(backend_->compile(f, variant, target_, {}).status().code(), ErrorCode::kUnsupported);
  Expr global = make_global_var("g", Type::function({type}, type));
  Function g = make_function({x}, *make_function_call(global, {x}));
  EXPECT_EQ(backend_->variants(g, target_, {}).status().code(), ErrorCode::kUnsupported);
}

TEST_F(ReferenceBackendTest, RunTimeErrorsComeBackAsStatus) {
  Expr i = make_var("i", TensorType{{2}, DType::kInt64});
  Function f =
      make_function({i}, call("take", {make_constant(Tensor::from<float>({3}, {1, 2, 3})), i}));
  auto kernel = backend_->compile(f, Variant::plain("reference", f), target_, {});
  ASSERT_TRUE(kernel.ok());
  int64_t indices[2] = {0, 3};
  float out[2];
  void *in_ptr = indices, *out_ptr = out;
  EXPECT_EQ((*kernel)->run({&in_ptr, &out_ptr, nullptr}).code(), ErrorCode::kBadModel);
}

// Element (index) of the tensor in `data` laid out as `layout`.
std::vector<float> convert(Backend& backend, const Shape& shape, std::string_view from_tag,
                           std::string_view to_tag, const std::vector<float>& from) {
  Encoding source{DType::kFloat32, *Layout::parse(from_tag), {}};
  Encoding target{DType::kFloat32, *Layout::parse(to_tag), {}};
  auto kernel = backend.compile_conversion({shape, DType::kFloat32}, source, target, {});
  EXPECT_TRUE(kernel.ok()) << kernel.status().to_string();
  std::vector<float> to(target.layout.physical_bytes(shape, DType::kFloat32) / sizeof(float), -7);
  void *in = const_cast<float*>(from.data()), *out = to.data();
  EXPECT_TRUE((*kernel)->run({&in, &out, nullptr}).ok());
  return to;
}

// Of shapes within a tile and of several, with what is left over in each dimension.
TEST_F(ReferenceBackendTest, ConversionPlacesElementsWhereTheLayoutSays) {
  for (const Shape& shape : {Shape{2, 5, 3, 4}, Shape{2, 37, 3, 21}, Shape{18, 33, 1, 1}}) {
    const TensorType type{shape, DType::kFloat32};
    std::vector<float> plain(static_cast<size_t>(num_elements(shape)));
    for (size_t i = 0; i < plain.size(); ++i) plain[i] = static_cast<float>(i) + 1;
    for (const char* tag :
         {"acdb", "aBcd4b", "aBcd8b", "aBcd16b", "ABcd2b2a", "bcda", "ABcd4b2a2b", "aBcD16d8b"}) {
      Layout layout = *Layout::parse(tag);
      std::vector<float> blocked = convert(*backend_, shape, "", tag, plain);
      size_t zeros = 0;
      for (float value : blocked) zeros += value == 0;
      EXPECT_EQ(zeros, blocked.size() - plain.size()) << tag;
      size_t next = 0;
      for (int64_t n = 0; n < shape[0]; ++n)
        for (int64_t c = 0; c < shape[1]; ++c)
          for (int64_t h = 0; h < shape[2]; ++h)
            for (int64_t w = 0; w < shape[3]; ++w)
              ASSERT_EQ(blocked[static_cast<size_t>(layout.offset(shape, {n, c, h, w}))],
                        plain[next++])
                  << type.to_string() << " " << tag;
      EXPECT_EQ(convert(*backend_, shape, tag, "", blocked), plain) << tag;
      EXPECT_EQ(
          convert(*backend_, shape, "aBcd4b", tag, convert(*backend_, shape, "", "aBcd4b", plain)),
          blocked)
          << tag;
    }
  }
}

TEST_F(ReferenceBackendTest, CastsRoundToNearestEven) {
  TensorType type{{5}, DType::kFloat32};
  // 1 + 2^-8 lies half-way between two bfloat16 values; so does 1 + 3·2^-8.
  std::vector<float> values = {1.0f, 1.00390625f, 1.01171875f, -2.5f, 3e38f};
  auto down =
      backend_->compile_conversion(type, {DType::kFloat32, {}, {}}, {DType::kBFloat16, {}, {}}, {});
  auto up =
      backend_->compile_conversion(type, {DType::kBFloat16, {}, {}}, {DType::kFloat32, {}, {}}, {});
  ASSERT_TRUE(down.ok() && up.ok());
  uint16_t narrow[5];
  float wide[5];
  void *a = values.data(), *b = narrow, *c = wide;
  ASSERT_TRUE((*down)->run({&a, &b, nullptr}).ok());
  ASSERT_TRUE((*up)->run({&b, &c, nullptr}).ok());
  EXPECT_EQ(wide[0], 1.0f);
  EXPECT_EQ(wide[1], 1.0f);
  EXPECT_EQ(wide[2], 1.015625f);
  EXPECT_EQ(wide[3], -2.5f);
  EXPECT_NEAR(wide[4], 3e38f, 3e38f / 256);
}

TEST_F(ReferenceBackendTest, RefusesConversionsItCannotDo) {
  TensorType type{{2, 3}, DType::kFloat32};
  Encoding plain{DType::kFloat32, {}, {}}, other = plain;
  other.layout = *Layout::parse("acb");
  EXPECT_EQ(backend_->compile_conversion(type, plain, other, {}).status().code(),
            ErrorCode::kUnsupported);
  other = plain;
  other.dtype = DType::kInt32;
  EXPECT_EQ(backend_->compile_conversion(type, plain, other, {}).status().code(),
            ErrorCode::kUnsupported);
  other = plain;
  other.device.device = "gpu";  // which nobody offers
  EXPECT_EQ(backend_->compile_conversion(type, plain, other, {}).status().code(),
            ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace collage
