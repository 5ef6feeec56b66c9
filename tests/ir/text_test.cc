// The text form: what is printed parses back equal and prints the same; errors say where and what.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_parser.h"
#include "ir/text_printer.h"
#include "test_ops.h"

namespace collage {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr const char* kVersion = "#[version = \"0.0.5\"]\n";

class Text : public ::testing::Test {
 protected:
  void SetUp() override { register_test_ops(); }

  static std::string error_of(const std::string& text, const ParseOptions& options = {}) {
    Result<Module> module = parse_module(text, options);
    return module.ok() ? "parsed" : module.status().to_string();
  }
  // The text, parsed and printed again.
  static std::string again(const std::string& text) {
    Result<Module> module = parse_module(kVersion + text);
    if (!module) return module.status().to_string();
    return to_text(*module).substr(std::string(kVersion).size());
  }
};

TEST_F(Text, PrintsAsWrittenByHand) {
  const std::string text =
      R"(def @main(%x: Tensor[(4, 3), float32], %"in:0": (float32, int64)) -> (Tensor[(2, 3), float32], float32, bool) {
  %0 = test.split(%x, parts=2);
  %1 = fn (%x_1: Tensor[(2, 3), float32], %y: float32, Compiler="a \"b\"", Primitive=1) -> Tensor[(2, 3), float32] {
    %2 = test.unary(%x_1, alpha=0.25f, mode="q");
    test.add(%2, %x_1)
  };
  %3 = %1(%0.1, 0.5f);
  %4 = @next(%3);
  (%4, %"in:0".0, True)
}
def @next(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  test.add(%x, meta[relay.Constant][0] /*Tensor[(2, 3), float32]*/)
}

#[metadata]
{
  "relay.Constant": [
    {"dtype": "float32", "shape": [2, 3], "values": [1.0, -0.0, 0.1, "inf", 1e-45, 3.4028235e+38]}
  ]
}
)";
  EXPECT_EQ(again(text), text);
}

TEST_F(Text, ReadsWhatPeopleWrite) {
  EXPECT_EQ(again(R"(
# a comment
fn (%x: Tensor[(4, 3), float32]) {  // no result type
  let %y = test.add(test.unary(%x), (%x)) /* ty=Tensor[(4, 3), float32] */;
  test.add(%y, %x)
})"),
            R"(def @main(%x: Tensor[(4, 3), float32]) -> Tensor[(4, 3), float32] {
  %0 = test.unary(%x);
  %1 = test.add(%0, %x);
  test.add(%1, %x)
}
)");
}

TEST_F(Text, AttributesOfEveryKindRoundTrip) {
  Expr x = make_var("x", TensorType{{2}, DType::kFloat32});
  Attrs attrs{{"flag", true},
              {"whole", std::numeric_limits<int64_t>::min()},
              {"real", 0.1},
              {"text", std::string("a\"\\\n\tü")},
              {"dtype", DType::kInt8},
              {"ints", Ints{1, -2}},
              {"lists", IntLists{{}, {1, 2}}},
              {"reals", std::vector<double>{1, 1e-300, -std::numeric_limits<double>::infinity()}},
              {"any", Ints{7}}};
  Function function = make_function({x}, *make_call("test.attrs", {x}, attrs));
  Result<Function> parsed = parse_function(to_text(function));
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  EXPECT_EQ(as<CallNode>((*parsed)->body)->attrs, as<CallNode>(function->body)->attrs);
  EXPECT_TRUE(structural_equal(function, *parsed));
}

TEST_F(Text, ScalarsOfEveryDtypeRoundTrip) {
  std::vector<Expr> scalars = {make_scalar<float>(0.1f),
                               make_scalar<float>(-0.0f),
                               make_scalar<float>(-std::numeric_limits<float>::infinity()),
                               make_scalar<float>(std::numeric_limits<float>::quiet_NaN()),
                               make_scalar<float>(-std::numeric_limits<float>::quiet_NaN()),
                               make_scalar<double>(1e-310),
                               make_scalar<int8_t>(-128),
                               make_scalar<uint8_t>(255),
                               make_scalar<int16_t>(-3),
                               make_scalar<uint16_t>(3),
                               make_scalar<int32_t>(-7),
                               make_scalar<uint32_t>(4000000000u),
                               make_scalar<int64_t>(std::numeric_limits<int64_t>::min()),
                               make_scalar<uint64_t>(std::numeric_limits<uint64_t>::max()),
                               make_scalar<bool>(true),
                               make_constant(Tensor::zeros(DType::kFloat16, {})),
                               make_constant(Tensor::zeros(DType::kBFloat16, {}))};
  Function function = make_function({}, make_tuple(scalars));
  Result<Function> parsed = parse_function(to_text(function));
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string() << to_text(function);
  EXPECT_TRUE(structural_equal(function, *parsed)) << to_text(*parsed);
  EXPECT_THAT(to_text(function), HasSubstr("(0.1f, -0f, -inff, nanf, "));
}

TEST_F(Text, RandomGraphsRoundTrip) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Function function = random_function(seed, 3 + static_cast<int>(seed % 40));
    PrintOptions options;
    options.show_types = seed % 2 == 0;
    std::string text = to_text(Module(function), options);
    Result<Function> parsed = parse_function(text);
    ASSERT_TRUE(parsed.ok()) << parsed.status().to_string() << "\n" << text;
    ASSERT_TRUE(structural_equal(function, *parsed)) << text;
    ASSERT_EQ(to_text(Module(*parsed), options), text);
    std::string key = canonical_text(function);
    ASSERT_EQ(canonical_text(*parsed), key);
    ParseOptions zeros{.folder = {},
                       .constant = [](const TensorType& type,
                                      size_t) { return Tensor::allocate(type.dtype, type.shape); },
                       .abstract_function = {}};
    ASSERT_TRUE(parse_function(key, zeros).ok()) << key;
  }
}

TEST_F(Text, CanonicalTextForgetsNamesAndWeights) {
  auto text = [](const char* name, const Tensor& constant) {
    Expr x = make_var(name, TensorType{{2}, DType::kFloat32});
    return canonical_text(make_function({x}, make_tuple({x, make_constant(constant)})));
  };
  EXPECT_EQ(text("x", Tensor::from<float>({2}, {1, 2})),
            text("image", Tensor::from<float>({2}, {3, 4})));
  EXPECT_NE(text("x", Tensor::from<float>({2}, {1, 2})),
            text("x", Tensor::from<float>({1, 2}, {1, 2})));
  EXPECT_NE(text("x", Tensor::from<float>({1}, {1})), text("x", Tensor::from<float>({1}, {2})));
  EXPECT_NE(text("x", Tensor::scalar(1.0f)), text("x", Tensor::scalar(2.0f)));
  EXPECT_NE(text("x", Tensor::from<int64_t>({2}, {1, 2})),
            text("x", Tensor::from<int64_t>({2}, {1, 3})));
}

// Whoever reads it may decide by them: zero points of weights.
TEST_F(Text, CanonicalTextKeepsManyIntegersThatAreEqual) {
  Tensor threes = Tensor::zeros(DType::kInt32, {300});
  for (int32_t& value : std::span(threes.data<int32_t>(), 300)) value = 3;
  const std::string key = canonical_text(make_function({}, make_constant(threes)));
  EXPECT_NE(key,
            canonical_text(make_function({}, make_constant(Tensor::zeros(DType::kInt32, {300})))));
  const Result<Function> parsed = parse_function(key);
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  const auto* constant = as<ConstantNode>((*parsed)->body);
  ASSERT_NE(constant, nullptr);
  EXPECT_EQ(constant->value.shape(), Shape{300});
  EXPECT_EQ(constant->value.element_as_int64(299), 3);
}

TEST_F(Text, DeepGraphsNeedNoStack) {
  Expr x = make_var("x", TensorType{{2}, DType::kFloat32});
  Expr y = x;
  for (int i = 0; i < 100000; ++i) y = *make_call("test.unary", {y});
  Function function = make_function({x}, y);
  Result<Function> parsed = parse_function(to_text(function));
  ASSERT_TRUE(parsed.ok()) << parsed.status().to_string();
  EXPECT_TRUE(structural_equal(function, *parsed));
}

TEST_F(Text, SideFileHoldsLargeConstants) {
  fs::path folder = fs::temp_directory_path() / fmt::format("collage_text_test_{}", ::getpid());
  fs::create_directories(folder);
  Tensor big = Tensor::empty(DType::kFloat32, {100, 7}), small = Tensor::zeros(DType::kInt8, {3});
  for (int i = 0; i < 700; ++i) big.data<float>()[i] = static_cast<float>(i) / 3;
  Module module(make_function({}, make_tuple({make_constant(big), make_constant(small),
                                              make_constant(big.reshaped({7, 100}))})));
  ASSERT_TRUE(save_module(module, folder / "m.relay").ok());
  Result<Module> loaded = load_module(folder / "m.relay");
  ASSERT_TRUE(loaded.ok()) << loaded.status().to_string();
  EXPECT_TRUE(structural_equal(module, *loaded));
  // A changed byte, a cut and a missing file are each one error.
  fs::path bin = folder / "m.relay.bin";
  auto size = fs::file_size(bin);
  {
    std::fstream file(bin, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(size) - 100);
    file.put('\x77');
  }
  EXPECT_THAT(load_module(folder / "m.relay").status().to_string(), HasSubstr("checksum"));
  fs::resize_file(bin, size - 200);
  EXPECT_THAT(load_module(folder / "m.relay").status().to_string(), HasSubstr("beyond the end"));
  fs::resize_file(bin, 20);
  EXPECT_THAT(load_module(folder / "m.relay").status().to_string(), HasSubstr("truncated"));
  fs::remove(bin);
  EXPECT_THAT(load_module(folder / "m.relay").status().to_string(), HasSubstr("No such file"));
  fs::remove_all(folder);
}

TEST_F(Text, CanonicalTextForgetsNamesAndWeightsButNotNumbers) {
  auto function = [](const std::string& name, float real, int64_t whole, const std::string& symbol,
                     int64_t few) {
    Expr x = make_var(name, TensorType{{100, 1}, DType::kFloat32});
    Expr y = *make_call(
        "test.add",
        {x, make_constant(Tensor::from<float>({100, 1}, std::vector<float>(100, real)))});
    Expr index = make_constant(Tensor::from<int64_t>({70}, std::vector<int64_t>(70, whole)));
    Expr small = make_constant(Tensor::from<float>({1}, {static_cast<float>(few)}));
    return make_function({x}, make_tuple({y, index, small}),
                         {{"Compiler", std::string("a")}, {"global_symbol", symbol}});
  };
  std::string key = canonical_text(function("x", 1, 2, "s", 3));
  EXPECT_EQ(key, canonical_text(function("other", 9, 2, "t", 3)));
  EXPECT_NE(key, canonical_text(function("x", 1, 9, "s", 3)));
  EXPECT_NE(key, canonical_text(function("x", 1, 2, "s", 9)));
}

TEST_F(Text, ErrorsSayWhereAndWhat) {
  EXPECT_EQ(error_of("fn (%x: float32) {\n  test.unary(%y)\n}"),
            "line 2, column 14: %y is not defined here");
  EXPECT_EQ(error_of("fn (%x: float32) {\n  nope(%x)\n}"),
            "line 2, column 3: unknown operator 'nope'");
  EXPECT_EQ(error_of("fn (%x: float32) { test.add(%x) }"),
            "line 1, column 20: test.add: takes 2 to 2 arguments, not 1");
  EXPECT_EQ(error_of("fn (%x: float32) { test.unary(%x, beta=1) }"),
            "line 1, column 20: test.unary: unknown attribute 'beta'");
  EXPECT_EQ(
      error_of("fn (%x: float32) { test.unary(%x, alpha=\"s\") }"),
      "line 1, column 20: test.unary: attribute 'alpha': value \"s\" has the wrong kind (like 1f)");
  EXPECT_EQ(error_of("fn (%x: float32) -> float64 { %x }"),
            "line 1, column 31: the function's result is a float32, annotated as float64");
  EXPECT_EQ(error_of("fn (%x: Tensor[(1, -1), float32]) { %x }"),
            "line 1, column 9: negative dimension in shape (1, -1)");
  EXPECT_EQ(error_of("fn (%x: Tensor[(1 3), float32]) { %x }"),
            "line 1, column 19: expected ')', found '3'");
  EXPECT_EQ(error_of("fn (%x: Tensor[(1 é), float32]) { %x }"),
            "line 1, column 19: expected ')', found 'é'");
  EXPECT_EQ(error_of("fn (%x: float32) { %0 = %x; %0"),
            "line 1, column 18: this '{' is not closed");
  EXPECT_EQ(error_of("fn (%x: float32) { %0 = %x; %0 = %x; %0 }"),
            "line 1, column 29: %0 is bound twice");
  EXPECT_EQ(error_of("fn (%x: float32) { %x.1 }"),
            "line 1, column 20: projection of a value that is not a tuple");
  EXPECT_EQ(error_of("fn (%x: (float32,)) { %x.1 }"),
            "line 1, column 23: projection index 1 out of range");
  EXPECT_EQ(error_of("def @main() { @f() } def @f() { 1 }"),
            "line 1, column 15: @f is used, so its definition needs a result type (-> …)");
  EXPECT_EQ(error_of("#[version = \"0.0.6\"]"),
            "line 1, column 13: text of version 0.0.6; this reads 0.0.5");
  EXPECT_EQ(error_of("def @f() { 1 } def @f() { 1 }"), "line 1, column 16: @f is defined twice");
  EXPECT_EQ(error_of("fn () { 300i8 }"), "line 1, column 9: '300' is no value of int8");
  EXPECT_EQ(error_of("fn () { /* }"), "line 1, column 9: this comment does not end");
  EXPECT_EQ(error_of("fn () { test.unary(1f, text=\"a) }"),
            "line 1, column 29: this string does not end");
  EXPECT_EQ(error_of("fn () { test.unary(1f) /* ty=int32 */ }"),
            "line 1, column 27: the value is a float32, annotated as int32");
  EXPECT_EQ(error_of("fn () { meta[relay.Constant][3] /*Tensor[(2), float32]*/ }"),
            "line 1, column 9: constant 3 is given by its type only, Tensor[(2), float32], and "
            "nothing supplies it");
  EXPECT_THAT(error_of("fn () { 1 } #[metadata] [1"), HasSubstr("no JSON object"));
  EXPECT_THAT(error_of("fn () { 1 } #[metadata] {\"side_file\": \"../x\"}"),
              HasSubstr("no plain file name"));
  EXPECT_THAT(error_of("fn () { meta[relay.Constant][0] } #[metadata] {\"relay.Constant\": "
                       "[{\"dtype\": \"float32\", \"shape\": [4000000000, 4000000000], "
                       "\"values\": []}]}"),
              HasSubstr("too many elements"));
}

TEST_F(Text, NestingIsLimited) {
  std::string open, close;
  for (int i = 0; i < 40; ++i) {
    open += "fn () { ";
    close += " }";
  }
  EXPECT_THAT(error_of(open + "1" + close), HasSubstr("functions nested more than 32 levels deep"));
  EXPECT_THAT(
      error_of("fn () { " + std::string(100000, '(') + "1" + std::string(100000, ')') + " }"),
      HasSubstr("nested more than 64 levels deep"));
  EXPECT_THAT(error_of("fn (%x: " + std::string(100000, '(')), HasSubstr("nested more than"));
  EXPECT_THAT(error_of("fn () { test.attrs(1f, ints=" + std::string(100000, '[')),
              HasSubstr("not closed"));
}

// Cut or damaged text gives an error or a module, and never ends the process.
TEST_F(Text, TuplesOfTuplesAreLimited) {
  // Each line doubles the type of the one before, or nests it once more.
  std::string wide = "fn (%x: float32) {\n  %0 = (%x, %x);\n",
              deep = "fn (%x: float32) {\n  %0 = (%x,);\n";
  for (int i = 1; i < 100; ++i) {
    wide += fmt::format("  %{} = (%{}, %{});\n", i, i - 1, i - 1);
    deep += fmt::format("  %{} = (%{},);\n", i, i - 1);
  }
  EXPECT_THAT(error_of(wide + "  %99\n}\n"), HasSubstr("a tuple of more than 65536 tensors"));
  EXPECT_THAT(error_of(deep + "  %99\n}\n"), HasSubstr("tuples nested more than 64 levels deep"));
}

TEST_F(Text, MetadataNestsNoDeeperThanItHasTo) {
  const std::string deep = std::string(200'000, '[') + std::string(200'000, ']');
  EXPECT_THAT(error_of("fn () {\n  meta[relay.Constant][0]\n}\n#[metadata]\n"
                       "{\"relay.Constant\": [" +
                       deep + "]}"),
              HasSubstr("the metadata section is no JSON object"));
}

TEST_F(Text, DamagedTextIsHarmless) {
  std::string text = to_text(Module(random_function(7, 20)));
  int parsed = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    parsed += parse_module(text.substr(0, i)).ok();
    std::string damaged = text;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 7)));
    parsed += parse_module(damaged).ok();
  }
  EXPECT_LT(parsed, static_cast<int>(2 * text.size()));
}

}  // namespace
}  // namespace collage
