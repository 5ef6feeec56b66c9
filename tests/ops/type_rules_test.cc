// Type rules refuse what would be wrong or undefined at run time, with a message that names the
// value: bad ranks, axes, groups, strides, extents that overflow.
#include "ir/op.h"
#include "op_test.h"
#include "ops/cases.h"

namespace collage {
namespace {

constexpr int64_t kHuge = int64_t{1} << 40;

TensorType f(Shape shape) { return {std::move(shape), DType::kFloat32}; }
TensorType i(Shape shape) { return {std::move(shape), DType::kInt64}; }

struct Bad {
  std::string op;
  std::vector<TensorType> types;
  Attrs attrs;
  std::string message;  // a part of it
  bool as_tuple = false;
};

const std::vector<Bad>& bad_calls() {
  static const std::vector<Bad> calls = {
      {"nn.conv2d", {f({1, 3, 8}), f({4, 3, 3, 3})}, {}, "rank 4"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 2, 3, 3})}, {}, "3 input channels"},
      {"nn.conv2d", {f({1, 4, 8, 8}), f({4, 2, 3, 3})}, {{"groups", int64_t{0}}}, "groups 0"},
      {"nn.conv2d", {f({1, 4, 8, 8}), f({4, 1, 3, 3})}, {{"groups", int64_t{3}}}, "3 groups"},
      {"nn.conv2d",
       {f({1, 4, 8, 8}), f({3, 2, 3, 3})},
       {{"groups", int64_t{2}}},
       "3 output channels"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 3, 3})}, {{"strides", Ints{0, 1}}}, "strides 0"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 3, 3})}, {{"strides", Ints{1}}}, "strides has 1"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 3, 3})}, {{"dilation", Ints{1, -1}}}, "dilation -1"},
      {"nn.conv2d",
       {f({1, 3, 8, 8}), f({4, 3, 3, 3})},
       {{"padding", Ints{-1, 0, 0, 0}}},
       "padding -1"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 3, 3})}, {{"padding", Ints{1, 1}}}, "padding has 2"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 9, 3})}, {}, "does not fit extent 8"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 0, 3})}, {}, "kernel size 0"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 3, 3})}, {{"channels", int64_t{5}}}, "channels"},
      {"nn.conv2d", {f({kHuge, 1, 1, 1}), f({kHuge, 1, 1, 1})}, {}, "too many elements"},
      {"nn.conv2d", {i({1, 3, 8, 8}), i({4, 3, 3, 3})}, {}, "floating point"},
      {"nn.conv2d", {f({1, 3, 8, 8}), {{4, 3, 3, 3}, DType::kFloat64}}, {}, "element types differ"},
      {"nn.conv2d", {f({1, 3, 8, 8}), f({4, 3, 3, 3})}, {{"strides", None{}}}, "wrong kind"},
      {"nn.conv2d",
       {f({1, 3, 8, 8}), f({4, 3, 3, 3})},
       {{"colour", int64_t{1}}},
       "unknown attribute"},
      {"nn.conv2d_transpose", {f({1, 3, 8, 8}), f({4, 3, 3, 3})}, {}, "3 input channels"},
      {"nn.conv1d_transpose",
       {f({1, 1, 4}), f({1, 1, 3})},
       {{"output_padding", Ints{1}}},
       "output_padding 1"},
      {"nn.conv1d_transpose",
       {f({1, 1, 1}), f({1, 1, 1})},
       {{"padding", Ints{1, 1}}},
       "out of range"},
      {"nn.conv1d_transpose",
       {f({1, 1, kHuge}), f({1, 1, 1})},
       {{"strides", Ints{1 << 30}}},
       "out of range"},
      {"nn.dense", {f({2, 3}), f({4, 5})}, {}, "does not fit"},
      {"nn.dense", {f({2, 3}), f({4, 3})}, {{"units", int64_t{7}}}, "units"},
      {"nn.dense", {f({2, 3}), f({4, 3})}, {{"out_dtype", std::string("int8")}}, "out_dtype"},
      {"nn.matmul", {f({2, 3}), f({4, 5})}, {}, "inner dimensions 3 and 4"},
      {"nn.matmul", {f({2, 2, 3}), f({3, 3, 5})}, {}, "do not broadcast"},
      {"nn.matmul", {f({3}), f({3, 5})}, {}, "rank 2 or more"},
      {"nn.batch_matmul", {f({2, 3}), f({4, 3})}, {}, "rank 3"},
      {"nn.bias_add", {f({2, 3}), f({2})}, {}, "must have shape (3)"},
      {"nn.bias_add", {f({2, 3}), f({3})}, {{"axis", int64_t{2}}}, "axis 2"},
      {"nn.attention",
       {f({2, 3, 4}), f({2, 5, 6}), f({2, 5, 4})},
       {{"scale", 1.0}},
       "k must have shape"},
      {"nn.attention",
       {f({2, 3, 4}), f({2, 5, 4}), f({2, 5, 4}), f({2, 2, 5})},
       {{"scale", 1.0}},
       "broadcast"},
      {"add", {f({2, 3}), f({2})}, {}, "do not broadcast"},
      {"add", {f({2}), i({2})}, {}, "element types differ"},
      {"add", {{{2}, DType::kBool}, {{2}, DType::kBool}}, {}, "bool"},
      {"add", {f({kHuge, 1}), f({1, kHuge})}, {}, "too many elements"},
      {"logical_and", {f({2}), f({2})}, {}, "float32"},
      {"bitwise_and", {f({2}), f({2})}, {}, "float32"},
      {"where", {f({2}), f({2}), f({2})}, {}, "bool"},
      {"tanh", {i({2})}, {}, "floating point"},
      {"clip", {f({2})}, {{"a_min", 0.0}}, "'a_max' is missing"},
      {"nn.gelu", {f({2})}, {{"approximate", std::string("fast")}}, "'fast'"},
      {"nn.prelu", {f({1, 3, 2}), f({2})}, {}, "alpha"},
      {"nn.softmax", {f({2, 3})}, {{"axis", int64_t{-3}}}, "axis -3"},
      {"nn.softmax", {f({})}, {}, "axis -1"},
      {"nn.layer_norm", {f({2, 3}), f({2}), f({3})}, {}, "must have shape (3)"},
      {"nn.layer_norm", {f({2, 3}), f({3}), f({3})}, {{"epsilon", -1.0}}, "epsilon -1"},
      {"nn.group_norm", {f({1, 6, 2}), f({6}), f({6})}, {{"num_groups", int64_t{4}}}, "4 groups"},
      {"nn.group_norm", {f({1, 6, 2}), f({6}), f({6})}, {{"num_groups", int64_t{0}}}, "0 groups"},
      {"nn.lrn", {f({1, 3, 2})}, {{"size", int64_t{0}}}, "size 0"},
      {"nn.max_pool2d", {f({1, 3, 8, 8})}, {}, "'pool_size' is missing"},
      {"nn.max_pool2d", {f({1, 3, 8, 8})}, {{"pool_size", Ints{2}}}, "pool_size has 1"},
      {"nn.max_pool2d", {f({1, 3, 8, 8})}, {{"pool_size", Ints{0, 2}}}, "size 0"},
      {"nn.max_pool2d", {f({1, 3, 8, 8})}, {{"pool_size", Ints{9, 2}}}, "does not fit"},
      {"nn.global_avg_pool2d", {f({1, 3, 0, 8})}, {}, "empty"},
      {"nn.pad", {f({2}), f({})}, {{"pad_width", IntLists{}}}, "0 pad widths"},
      {"nn.pad", {f({2}), f({})}, {{"pad_width", IntLists{{1}}}}, "two entries"},
      {"nn.pad", {f({2}), f({})}, {{"pad_width", IntLists{{-2, -1}}}}, "remove more"},
      {"nn.pad", {f({2}), f({})}, {{"pad_width", IntLists{{INT64_MAX, 1}}}}, "overflows"},
      {"nn.pad",
       {f({0}), f({})},
       {{"pad_width", IntLists{{1, 1}}}, {"pad_mode", std::string("edge")}},
       "needs elements"},
      {"nn.pad", {f({2}), f({2})}, {{"pad_width", IntLists{{1, 1}}}}, "pad value"},
      {"image.resize2d", {f({1, 3, 8, 8})}, {{"size", Ints{4}}}, "size has 1"},
      {"image.resize2d", {f({1, 3, 8, 8})}, {{"size", Ints{4, -1}}}, "size -1"},
      {"image.resize2d", {f({1, 3, 0, 8})}, {{"size", Ints{4, 4}}}, "nothing to resize"},
      {"image.resize2d",
       {f({1, 3, 8, 8})},
       {{"size", Ints{4, 4}}, {"scales", std::vector<double>{0.5, 0.0}}},
       "scale 0"},
      {"image.resize2d",
       {f({1, 3, 8, 8})},
       {{"size", Ints{4, 4}}, {"method", std::string("area")}},
       "'area'"},
      {"reshape", {f({2, 3})}, {{"newshape", Ints{4}}}, "cannot take the shape"},
      {"reshape", {f({2, 3})}, {{"newshape", Ints{-1, 6}}}, "negative dimension"},
      {"reshape", {f({0})}, {{"newshape", Ints{0, kHuge, kHuge}}}, "too many elements"},
      {"squeeze", {f({2, 1})}, {{"axis", Ints{0}}}, "extent 2"},
      {"expand_dims", {f({2})}, {{"axis", int64_t{3}}}, "axis 3"},
      {"expand_dims", {f({2})}, {{"axis", int64_t{0}}, {"num_newaxis", kHuge}}, "num_newaxis"},
      {"transpose", {f({2, 3})}, {{"axes", Ints{0}}}, "1 axes"},
      {"transpose", {f({2, 3})}, {{"axes", Ints{0, 0}}}, "given twice"},
      {"concatenate", {f({2, 3}), f({3, 3})}, {{"axis", int64_t{1}}}, "field 1", true},
      {"concatenate", {f({2, 3}), f({2})}, {}, "field 1", true},
      {"concatenate", {f({2, 3}), i({2, 3})}, {}, "element types differ", true},
      {"concatenate", {f({2, 3})}, {}, "no tuple"},
      {"stack", {f({2}), f({3})}, {}, "field 1", true},
      {"split", {f({5})}, {{"indices_or_sections", int64_t{2}}}, "2 sections"},
      {"split", {f({5})}, {{"indices_or_sections", int64_t{0}}}, "0 sections"},
      {"split", {f({5})}, {{"indices_or_sections", Ints{3, 2}}}, "split point 2"},
      {"split", {f({5})}, {{"indices_or_sections", Ints{6}}}, "split point 6"},
      {"split", {f({5})}, {{"indices_or_sections", 0.5}}, "no list of integers"},
      {"strided_slice",
       {f({5})},
       {{"begin", Ints{0}}, {"end", Ints{5}}, {"strides", Ints{0}}},
       "stride 0"},
      {"strided_slice", {f({5})}, {{"begin", Ints{0}}, {"end", Ints{5, 5}}}, "2 ends"},
      {"strided_slice",
       {f({5})},
       {{"begin", Ints{0}}, {"end", Ints{5}}, {"axes", Ints{1}}},
       "axis 1"},
      {"tile", {f({2})}, {{"reps", Ints{-1}}}, "-1"},
      {"tile", {f({kHuge})}, {{"reps", Ints{kHuge}}}, "overflows"},
      {"repeat", {f({2})}, {{"repeats", int64_t{0}}}, "repeats 0"},
      {"broadcast_to", {f({2})}, {{"shape", Ints{3}}}, "do not broadcast"},
      {"broadcast_to", {f({2, 1})}, {{"shape", Ints{1}}}, "does not broadcast"},
      {"full", {f({2})}, {{"shape", Ints{3}}}, "fill value"},
      {"full", {f({})}, {{"shape", Ints{-3}}}, "negative dimension"},
      {"nn.depth_to_space", {f({1, 6, 2, 2})}, {{"block_size", int64_t{2}}}, "blocks of 2"},
      {"nn.depth_to_space", {f({1, 4, 2, 2})}, {{"block_size", int64_t{0}}}, "block size 0"},
      {"nn.space_to_depth", {f({1, 1, 3, 2})}, {{"block_size", int64_t{2}}}, "blocks of 2"},
      {"take", {f({2}), f({2})}, {}, "integers"},
      {"take", {f({}), i({2})}, {}, "axis 0"},
      {"gather", {f({2, 2}), i({2})}, {}, "rank 2"},
      {"gather", {f({2, 2}), i({2, 3})}, {}, "reach beyond"},
      {"gather_nd", {f({2, 2}), i({1, 3})}, {}, "3 entries"},
      {"gather_nd", {f({2, 2}), i({1, 1})}, {{"batch_dims", int64_t{2}}}, "batch_dims 2"},
      {"vision.roi_align",
       {f({1, 2, 8, 8}), f({3, 5}), i({3})},
       {{"pooled_size", Ints{2, 2}}},
       "rois must have shape (3, 4)"},
      {"vision.roi_align",
       {f({1, 2, 8, 8}), f({3, 4}), i({3})},
       {{"pooled_size", Ints{2}}},
       "pooled_size has 1"},
      {"vision.roi_align",
       {f({1, 2, 8, 8}), f({3, 4}), i({3})},
       {{"pooled_size", Ints{0, 2}}},
       "pooled_size 0"},
      {"vision.roi_align",
       {f({1, 2, 8, 8}), f({3, 4}), i({3})},
       {{"pooled_size", Ints{2, 2}}, {"sample_ratio", int64_t{-1}}},
       "sample_ratio -1"},
      {"vision.roi_align",
       {f({1, 2, 8, 0}), f({3, 4}), i({3})},
       {{"pooled_size", Ints{2, 2}}},
       "no pixels"},
      {"vision.roi_align",
       {f({1, 2, 8, 8}), f({3, 4}), i({3})},
       {{"pooled_size", Ints{2, 2}}, {"mode", std::string("min")}},
       "mode"},
      {"nn.rnn",
       {f({3, 2, 4}), f({1, 5, 4}), f({1, 5, 6}), f({1, 10}), i({2}), f({1, 2, 6})},
       {},
       "weight must have shape (1, 6, 4)"},
      {"nn.rnn",
       {f({3, 2, 4}), f({1, 5, 4}), f({1, 5, 5}), f({1, 10}), i({3}), f({1, 2, 5})},
       {},
       "lengths must have shape (2)"},
      {"nn.rnn",
       {f({3, 2, 4}), f({1, 5, 4}), f({1, 5, 5}), f({1, 10}), f({2}), f({1, 2, 5})},
       {},
       "integers"},
      {"nn.rnn",
       {f({3, 2, 4}), f({1, 5, 4}), f({1, 5, 5}), f({1, 10}), i({2}), f({1, 2, 5})},
       {{"direction", std::string("sideways")}},
       "direction"},
      {"nn.rnn",
       {f({3, 2, 4}), f({2, 5, 4}), f({2, 5, 5}), f({2, 10}), i({2}), f({2, 2, 5})},
       {{"direction", std::string("bidirectional")}, {"activations", std::string("tanh")}},
       "1 activations"},
      {"nn.rnn",
       {f({3, 2, 4}), f({1, 5, 4}), f({1, 5, 5}), f({1, 10}), i({2}), f({1, 2, 5})},
       {{"activations", std::string("swirl")}},
       "'swirl' is unknown"},
      {"nn.lstm",
       {f({3, 2, 1}), f({1, 4, 1}), f({1, 4, 1}), f({1, 8}), i({2}), f({1, 2, 1}), f({1, 2, 1}),
        f({1, 4})},
       {},
       "peepholes must have shape (1, 3)"},
      {"nn.gru",
       {f({3, 2, 1}), f({1, 3, 1}), f({1, 3, int64_t{1} << 61}), f({1, 6}), i({2}), f({1, 2, 1})},
       {},
       "overflows"},
      {"image.grid_sample", {f({1, 2, 3, 4}), f({1, 5, 3})}, {}, "a grid of shape"},
      {"image.grid_sample", {f({2, 2, 3, 4}), f({1, 5, 5, 2})}, {}, "a grid of shape"},
      {"image.grid_sample", {f({1, 2, 0, 4}), f({1, 5, 5, 2})}, {}, "no pixels"},
      {"image.grid_sample", {f({1, 2}), f({1, 0})}, {}, "spatial dimensions"},
      {"image.grid_sample",
       {f({1, 2, 3, 4}), f({1, 5, 5, 2})},
       {{"method", std::string("round")}},
       "method"},
      {"nn.deformable_conv",
       {f({1, 2, 6, 6}), f({2, 2, 3, 3}), f({1, 18, 4, 3})},
       {{"strides", Ints{1, 1}}, {"padding", Ints{0, 0, 0, 0}}, {"dilation", Ints{1, 1}}},
       "offset must have shape (1, 18, 4, 4)"},
      {"nn.deformable_conv",
       {f({1, 2, 6, 6}), f({2, 2, 3, 3}), f({1, 18, 4, 4})},
       {{"strides", Ints{1, 1}},
        {"padding", Ints{0, 0, 0, 0}},
        {"dilation", Ints{1, 1}},
        {"offset_groups", int64_t{3}}},
       "offset_groups 3"},
      {"reinterpret", {f({2})}, {{"dtype", DType::kInt64}}, "differ in size"},
      {"reinterpret", {f({2})}, {{"dtype", DType::kFloat16}}, "differ in size"},
      {"reinterpret", {{{2}, DType::kInt16}}, {{"dtype", DType::kFloat16}}, "the bits of float16"},
      {"random.uniform", {i({2})}, {{"shape", Ints{3}}}, "the key has shape (2)"},
      {"random.uniform", {f({})}, {{"shape", Ints{3}}}, "the key"},
      {"random.uniform", {i({}), i({2})}, {{"shape", Ints{3}}}, "the run has shape (2)"},
      {"random.normal", {i({})}, {{"shape", Ints{3, -1}}}, "shape (3, -1)"},
      {"random.normal", {i({})}, {{"shape", Ints{kHuge, kHuge}}}, "too many elements"},
      {"random.normal", {i({})}, {{"shape", Ints{3}}, {"dtype", DType::kInt32}}, "type int32"},
      {"one_hot", {i({2}), f({}), f({})}, {{"depth", int64_t{0}}}, "depth 0"},
      {"one_hot", {i({kHuge}), f({}), f({})}, {{"depth", kHuge}}, "too many elements"},
      {"scatter_elements", {f({2}), i({1}), f({2})}, {}, "updates"},
      {"scatter_elements", {f({2}), i({1}), f({1})}, {{"reduction", std::string("xor")}}, "'xor'"},
      {"scatter_nd", {f({2}), i({1, 2}), f({1})}, {}, "2 entries"},
      {"sum", {f({2})}, {{"axis", Ints{1}}}, "axis 1"},
      {"sum", {f({2})}, {{"axis", Ints{0, -1}}}, "given twice"},
      {"sum", {f({2})}, {{"axis", std::string("x")}}, "no list of integers"},
      {"all", {f({2})}, {}, "float32"},
      {"argmax", {f({0})}, {}, "empty"},
      {"topk", {f({3})}, {{"k", int64_t{4}}}, "k 4"},
      {"trilu", {f({3})}, {}, "rank 2"},
      {"reverse_sequence", {f({3, 4}), i({4})}, {}, "lengths"},
  };
  return calls;
}

TEST(TypeRulesTest, BadCallsAreRefusedWithTheValue) {
  for (const Bad& bad : bad_calls()) {
    Result<Expr> call = try_call(bad.op, bad.types, bad.attrs, bad.as_tuple);
    ASSERT_FALSE(call.ok()) << bad.op << " accepted, expected: " << bad.message;
    EXPECT_EQ(call.status().code(), ErrorCode::kBadModel) << bad.op;
    EXPECT_THAT(call.status().to_string(), ::testing::HasSubstr(bad.message)) << bad.op;
    EXPECT_THAT(call.status().to_string(), ::testing::StartsWith(bad.op)) << bad.op;
  }
}

TEST(TypeRulesTest, NoOperatorAcceptsWrongArgumentCounts) {
  register_all_ops();
  for (const OpDef* op : all_ops()) {
    EXPECT_EQ(make_call(*op, {}).ok(), op->max_args == 0) << op->name;
    std::vector<Expr> many(9, make_var("x", f({2, 2, 2, 2})));
    EXPECT_FALSE(make_call(*op, many).ok()) << op->name;
  }
}

// No type rule may crash, whatever the types of its arguments are.
TEST(TypeRulesTest, OddArgumentTypesNeverCrash) {
  register_all_ops();
  std::vector<Type> odd = {f({}),
                           f({0}),
                           f({kHuge}),
                           f({1, 1, 1, 1, 1, 1, 1}),
                           i({3}),
                           Type(TensorType{{2, 2}, DType::kBool}),
                           Type::tuple({}),
                           Type::tuple({Type::tuple({Type(f({2}))})}),
                           f({2, 0, 3, kHuge}),
                           Type::function({Type(f({2}))}, Type(f({2})))};
  size_t accepted = 0, refused = 0;
  for (const OpDef* op : all_ops())
    for (const OpCase& c : op_cases(op->name))
      for (size_t arg = 0; arg < (c.as_tuple ? 1 : c.args.size()); ++arg)
        for (const Type& type : odd) {
          std::vector<Expr> args;
          for (const OpArg& a : c.args) args.push_back(make_var("x", a.type));
          if (c.as_tuple) args = {make_tuple(args)};
          args[arg] = make_var("odd", type);
          ++(make_call(*op, args, c.attrs).ok() ? accepted : refused);
        }
  EXPECT_GT(accepted, 100u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace collage
