// Modules as script: what is printed parses to an equal module and prints the same; what people
// write means what it means in TVM; what is wrong is refused with its place.
#include "frontend/script/script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/script/round_trip.h"
#include "ir/op.h"
#include "ir/structural.h"
#include "ir/text_printer.h"
#include "ops/placement.h"
#include "ops/registry.h"
#include "tensor_program/module_programs.h"
#include "tensor_program/parsing.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

class Script : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { register_all_ops(); }

  static Module parsed(const std::string& text) {
    Result<Module> module = parse_script(text);
    EXPECT_TRUE(module.ok()) << module.status().to_string() << "\n" << text;
    return module.ok() ? std::move(module).value() : Module();
  }

  static std::string refusal(const std::string& text) {
    Result<Module> module = parse_script(text);
    EXPECT_FALSE(module.ok()) << to_text(module.value());
    return module.ok() ? "" : module.status().to_string();
  }

  /// The program f of a class with this body, as the text of programs has it.
  static std::string program(const std::string& body) {
    const Module module = parsed("@ir_module\nclass M:\n" + body);
    const auto found = module.abstract_functions.find("f");
    return found == module.abstract_functions.end() ? "" : found->second->to_text();
  }
  static std::string program_refusal(const std::string& body) {
    return refusal("@ir_module\nclass M:\n    @T.prim_func\n" + body);
  }
  /// The function main of these lines, as Relay text has it.
  static std::string graph(const std::string& body) {
    return to_text(parsed("@ir_module\nclass M:\n" + body));
  }
};

Module from_relay(const std::string& text) {
  ParseOptions options;
  options.abstract_function = abstract_function;
  Result<Module> module = parse_module(text, options);
  EXPECT_TRUE(module.ok()) << module.status().to_string();
  return module.ok() ? std::move(module).value() : Module();
}

TEST_F(Script, PrintsAsWrittenByHand) {
  const std::string text = R"(@ir_module
class Module:
    @T.prim_func
    def mm(X: T.Buffer((16, 32), "float32"), W: T.Buffer((32, 24), "float32"), Y: T.Buffer((16, 24), "float32")):
        T.func_attr({"schedule": "Y.update(0).reorder(j, k); Y.parallel(i);"})
        for i, j, k in T.grid(16, 24, 32):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0.0)
                Y[vi, vj] += X[vi, vk] * W[vk, vj]

    update = R.extern("somebody's", (R.Tensor((384,), "float32"),), R.Tensor((384,), "float32"))

    @R.function
    def main(x: R.Tensor((16, 32), "float32"), w: R.Tensor((32, 24), "float32")) -> R.Tensor((384,), "float32"):
        @R.function
        def fused(p: R.Tensor((384,), "float32")) -> R.Tensor((384,), "float32"):
            R.func_attr({"Compiler": "native", "Primitive": 1})
            with R.dataflow():
                lv0 = R.multiply(p, R.const(0.5, "float32"))
                lv1 = R.exp(lv0)
                R.output(lv1)
            return lv1
        with R.dataflow():
            lv0_1 = R.call_tir(mm, (x, w), (16, 24), dtype="float32")
            lv1_1 = R.reshape(lv0_1, newshape=[384])
            lv2 = fused(lv1_1)
            lv3 = R.call_dps_packed(update, (lv2,), (384,), dtype="float32")
            R.output(lv3)
        return lv3
)";
  const Result<std::string> again = to_script(parsed(text));
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(*again, text);
}

TEST_F(Script, ProgramsRoundTrip) {
  for (const char* text :
       {"param A: float32[3, 40] in \"texture\"; result y[i:3] in \"global\" = A[i, 0];",
        "const t: int32[3] = {2, -1, 0}; param x: float32[4]; result y[i:3] = x[max(t[i], 0)];",
        "param x: float32[]; result y[] = x[] + 1.0f; result z[j:2] = x[] * 2.0f;",
        "param x: float64[2]; const c: float64[3] = {0.1d, infd, -2.5d}; "
        "result y[i:2] = x[i] * 0.1d + c[i];",
        "param A: float32[128, 128]; param B: float32[128, 128]; "
        "stage P[j1:8, k:128, j0:16] = B[k, j1 * 16 + j0]; "
        "result C[i:128, j:128] = sum(k:128) A[i, k] * P[j / 16, k, j % 16]; "
        "schedule { P.compute_root(); C.split(i, task, row, 8, guarded); C.parallel(task); }",
        "param x: float32[4, 10]; stage part[i:4, u:4] = sum(r:2) x[i, r * 4 + u]; "
        "update part[i, r] = sum(r:2) x[i, 8 + r]; result joined[i:4, j:12]: float32; "
        "update joined[i, r] = set(r:10) x[i, r]; update joined[i, r + 10] = set(r:2) part[i, r]; "
        "result largest[i:4] = max(r:4) part[i, r];",
        "param rows: int32[2]; param U: float32[2, 8]; inout X[i:64, j:8]: float32; "
        "update X[min(max(rows[r], 0), 63), j] = sum(r:2) U[r, j]; "
        "update X[i, j] = set() tanh(X[i, j]);",
        "param x: int32[4]; result y[i:4] = product(r:3) x[i] + r; result z[i:4] = 7; "
        "update z[i] = min(r:2) x[r]; result t[i:4, j:4]: int32; update t[j, i] = sum() x[i];",
        "param x: int8[4]; result y[i:4] = 0.0f; update y[i] = sum() float32(x[i] * 3_int8);"})
    expect_script_round_trip(from_relay("program @f { " + std::string(text) + " }\n"));
}

TEST_F(Script, TermsRoundTrip) {
  for (const char* term : {"1.0f / (1.0f + exp(-x[]))",
                           "(x[] + 2.0f) * x[] - x[] / 3.0f",
                           "x[] - (x[] - 1.5f)",
                           "-(2.0f)",
                           "-2.0f",
                           "-(-x[])",
                           "inff",
                           "-inff",
                           "nanf",
                           "1e-05f",
                           "float32(i * 2 - 1)",
                           "select(i % 2 == 0 && !(x[] > 0.25f) || i >= 7, x[], power(x[], 3.0f))",
                           "select(!(i < 3 && i > 1), 1.0f, 2.0f)",
                           "select((i < 3) == (i > 1), 1.0f, 2.0f)",
                           "float32(n[] + 5i64)",
                           "min(max(x[], 0.0f), 6.0f)",
                           "float64(x[]) * 0.1d",
                           "likely(x[])",
                           "tanh(sqrt(abs(floor(ceil(round(trunc(sin(cos(log(erf(x[])))))))))))",
                           "i / 2 * 2 + i % 3",
                           "quotient(x[], 3.0f)",
                           "select(is_nan(x[]), expm1(x[]), log1p(x[]))",
                           "-(-2147483648)",
                           "-i / -3 - -4",
                           "9223372036854775807i64 + 1i64",
                           "i - (i - 1) * (i + -2)"})
    expect_script_round_trip(
        from_relay("program @f { param x: float32[]; param n: int64[]; result y[i:9] "
                   "= " +
                   std::string(term) + "; }\n"));
}

TEST_F(Script, GraphFunctionsRoundTrip) {
  expect_script_round_trip(from_relay(R"(
def @main(%"in:0": (float32, Tensor[(2), int64]), %x: Tensor[(2, 3), float32]) {
  %0 = split(%x, indices_or_sections=[1], axis=1);
  %1 = fn (%y: Tensor[(2, 1), float32], Primitive=1, scale=2f, "a b"="c\"d\\\n", none=None, limits=[-inff, 1f]) -> Tensor[(2, 1), float32] {
    tanh(clip(%y, a_min=-inff, a_max=0.25f))
  };
  (%"in:0".0, %1(%0.0), @next(%x), (), (%0.1,), True, -3i64, nanf, inff, 1e-45f)
}
def @next(%x: Tensor[(2, 3), float32]) -> Tensor[(2, 3), float32] {
  add(%x, meta[relay.Constant][0] /*Tensor[(2, 3), float32]*/)
}
def @third(%lambda: Tensor[(2), float16]) { cast(%lambda, dtype="float32") }
def @fourth(%x: float32) { %x }
#[metadata]
{"relay.Constant": [{"dtype": "float32", "shape": [2, 3], "values": [1.0, -0.0, 0.1, "inf", 1e-45, 3e38]}]}
)"));
}

TEST_F(Script, LoopsWithoutAxesAndNamedNumbers) {
  const Module module = parsed(R"(
import tvm.script
from tvm.script import tir as T, relax as R
n, d = 4, 6  # what shapes are made of

@tvm.script.ir_module
class M:
    """A module."""
    @T.func
    def f(A: T.Buffer((n, d)), C: T.Buffer[2 * n, "float32"]):
        B = T.alloc(d, n)
        for i, j in grid(d, n):
            with block("transposed"):
                B[i, j] = A[j, i] / 2.0
        for i in range(2 * n):
            for k in T.serial(0, d):
                with T.block("sums"):
                    with T.init():
                        C[i] = -1
                    C[i] = T.max(C[i],
                                 B[k, i // 2])
)");
  EXPECT_EQ(module.abstract_functions.at("f")->to_text(), R"( {
  param A: float32[4, 6];
  stage B[i:6, j:4] = A[j, i] / 2.0f;
  result C[i:8] = -1.0f;
  update C[i] = max(k:6) B[k, i / 2];
})");
}

TEST_F(Script, HandlesBuffersAndFormsOfAssignments) {
  EXPECT_EQ(program(R"(
    @T.prim_func
    def f(a: T.handle, c: T.handle):
        A = T.match_buffer(a, (4, 8), "int32")
        C = T.match_buffer(c, (4,), dtype="int32")
        for i, k in T.grid(4, 8):
            with T.block("sum"):
                vi = T.axis.spatial(4, i)
                vk = T.axis.reduce(8, k)
                T.reads(A[vi, vk])
                T.writes(C[vi])
                with T.init():
                    C[vi] = 0
                C[vi] = A[vi, vk] + C[vi]
        for a in range(4):
            with T.block("next"):
                va = T.axis.spatial(4, a)
                C[va] = T.if_then_else(C[va] > 3 and not C[va] == 5, C[va], T.int32(-7))
        for i, k in T.grid(4, 2):
            C[i] *= T.Cast("int32", k)
)"),
            R"( {
  param A: int32[4, 8];
  result C[i:4] = sum(k:8) A[i, k];
  update C[i] = set() select(C[i] > 3 && !(C[i] == 5), C[i], -7);
  update C[i] = product(k:2) k;
})");
}

TEST_F(Script, ConstantsOfEveryForm) {
  EXPECT_THAT(graph(R"(
    @R.function
    def main(x: R.Tensor((2, 2))):
        a = R.const([[1, 2.5], [-3, 4e2]])
        b = R.const([1, -2], "float32")
        c = R.const(2)
        return (R.add(x, a), R.multiply(x, b), c, R.const(0.5, dtype="float64"), R.const(True, "bool"))
)"),
              AllOf(HasSubstr("\"values\": [1.0, 2.5, -3.0, 400.0]"),
                    HasSubstr("\"values\": [1.0, -2.0]"), HasSubstr("2, 0.5f64, True)")));
  const std::string text = R"(@ir_module
class M:
    @R.function
    def main(x: R.Tensor((2,))):
        w0 = R.const(shape=(2,))
        w1 = R.const(shape=(2,), dtype="float32")
        return (R.add(x, w0), w1)
)";
  EXPECT_THAT(refusal(text), HasSubstr("line 5, column 14: constant 0 is given by its type only"));
  ParseOptions options;
  options.constant = [](const TensorType& type, size_t index) -> Result<Tensor> {
    Tensor tensor = Tensor::empty(type.dtype, type.shape);
    for (int i = 0; i < 2; ++i) tensor.data<float>()[i] = static_cast<float>(10 * index + i);
    return tensor;
  };
  const Module module = parse_script(text, options).value();
  EXPECT_THAT(to_text(module), AllOf(HasSubstr("[0.0, 1.0]"), HasSubstr("[10.0, 11.0]")));
  EXPECT_THAT(to_script(module, {.most_printed = 1}).value(),
              HasSubstr("w0 = R.const(shape=(2,), dtype=\"float32\")"));
}

TEST_F(Script, ExternalFunctionsByLabel) {
  EXPECT_EQ(graph(R"(
    @R.function
    def main(x: R.Tensor((2,)), y: R.Tensor((2,), "int64")):
        a = R.call_dps_packed("nobody.knows", (x, y), (3,), dtype="int8")
        b = R.call_dps_packed(R.extern("nobody.knows"), [x, y], R.Tensor((3,), "int8"))
        c: R.Tensor((2,)) = R.call_packed("nobody's", x)
        R.call_packed("inplace", c)
        return (a, b, c)
)"),
            R"(#[version = "0.0.5"]
extern @inplace(Tensor[(2), float32], effects=1) -> Tensor[(2), float32] = "inplace";
extern @nobody_knows(Tensor[(2), float32], Tensor[(2), int64]) -> Tensor[(3), int8] = "nobody.knows";
extern @nobody_s(Tensor[(2), float32], effects=1) -> Tensor[(2), float32] = "nobody's";
def @main(%x: Tensor[(2), float32], %y: Tensor[(2), int64]) -> (Tensor[(3), int8], Tensor[(3), int8], Tensor[(2), float32]) {
  %0 = @nobody_knows(%x, %y);
  %1 = @nobody_knows(%x, %y);
  %2 = @nobody_s(%x);
  %3 = @inplace(%2);
  (%0, %1, %3)
}
)");
}

TEST_F(Script, RefusalsOfModules) {
  EXPECT_THAT(refusal(""), HasSubstr("expected a class below a decorator @ir_module"));
  EXPECT_THAT(refusal("@ir_module\nclass M:\n"), HasSubstr("lines that are indented below it"));
  EXPECT_THAT(refusal("@ir_module\nclass M:\n    n = 4\n"),
              HasSubstr("line 3, column 9: expected R.extern"));
  EXPECT_THAT(refusal("@ir_module\nclass M:\n    \"\"\"text\n"),
              HasSubstr("this string does not end"));
  const auto main = [](const std::string& body) {
    return refusal("@ir_module\nclass M:\n    @R.function\n    def main(x: R.Tensor((2, 3))):\n" +
                   body);
  };
  EXPECT_THAT(main("        y = R.exp(x)\n"), HasSubstr("nothing is returned"));
  EXPECT_THAT(main("        return y\n"), HasSubstr("line 5, column 16: there is no y here"));
  EXPECT_THAT(main("        return R.strange(x)\n"),
              HasSubstr("line 5, column 16: unknown operator 'R.strange'"));
  EXPECT_THAT(main("        return R.exp(x) x\n"),
              HasSubstr("line 5, column 25: expected the end of the line"));
  EXPECT_THAT(main("        return x\n        return x\n"),
              HasSubstr("line 6, column 9: nothing follows return"));
  EXPECT_THAT(main("        return x\n      return x\n"),
              HasSubstr("line 6, column 7: this line is indented like none above"));
  EXPECT_THAT(
      main("        y: R.Tensor((2, 4)) = R.exp(x)\n        return y\n"),
      HasSubstr("the value is a Tensor[(2, 3), float32], annotated as Tensor[(2, 4), float32]"));
  EXPECT_THAT(
      main("        y: R.Tensor((n, 3)) = x\n"),
      HasSubstr(
          "line 5, column 22: n is a symbol, which has no value here: give one, or write n = 16"));
  EXPECT_THAT(main("        y: R.Tensor((\"n\", 3)) = x\n"), HasSubstr("n is a symbol"));
  EXPECT_THAT(
      main("        with R.dataflow():\n            y = R.exp(x)\n            z = R.exp(y)\n"
           "            R.output(z)\n        return y\n"),
      HasSubstr("line 9, column 16: there is no y here"));
  EXPECT_THAT(main("        R.output(x)\n"),
              HasSubstr("line 5, column 18: R.output outside of R.dataflow()"));
  EXPECT_THAT(main("        return R.call_tir(f, (x,), (2, 3))\n"),
              HasSubstr("there is no f in the module"));
  EXPECT_THAT(main("        return R.call_dps_packed((2, 3), \"f\", (x,), (2, 3))\n"),
              HasSubstr("line 5, column 16: two shapes of one result"));
  EXPECT_THAT(
      refusal("@ir_module\nclass M:\n    g = R.extern(\"f\", (R.Tensor((2,)),), R.Tensor((3,)))\n"
              "    @R.function\n    def main(x: R.Tensor((2,))):\n"
              "        R.call_packed(g, x)\n        return x\n"),
      HasSubstr("nothing takes the result of f, and it updates no argument"));
  EXPECT_THAT(main("        R.call_packed(main, x)\n        return x\n"),
              HasSubstr("there is no main in the module"));
  EXPECT_THAT(main("        y = R.call_packed(\"f\", x)\n        return x\n"),
              HasSubstr("there is no external function 'f'"));
  EXPECT_THAT(main("        return R.const([[1, 2], [3]])\n"),
              HasSubstr("lists of different lengths"));
  EXPECT_THAT(main("        return R.add(x, x, axis=1)\n"), HasSubstr("unknown attribute 'axis'"));
  std::string nested = "x";
  for (int i = 0; i < 100; ++i) nested = "(" + nested + ",)";
  EXPECT_THAT(main("        return " + nested + "\n"),
              HasSubstr("nested more than 64 levels deep"));
  std::string doubled = "        y = (x, x)\n";
  for (int i = 0; i < 30; ++i) doubled += "        y = (y, y)\n";
  EXPECT_THAT(main(doubled), HasSubstr("a tuple of more than 65536 tensors"));
}

TEST_F(Script, RefusalsOfPrograms) {
  const auto body = [](const std::string& lines) {
    return program_refusal("    def f(A: T.Buffer((4, 8)), C: T.Buffer((4,))):\n" + lines);
  };
  EXPECT_THAT(body("        for i in range(4):\n            C[i] = A[i, 8]\n"),
              HasSubstr("line 6, column 13: stage C: dimension 1 of A is read: the index 8"));
  EXPECT_THAT(body("        for i in range(4):\n            C[i] = D[i, 8]\n"),
              HasSubstr("line 6, column 20: there is no D above"));
  EXPECT_THAT(body("        for i in range(4):\n            C[i] += A[i, 0]\n"),
              HasSubstr("line 6, column 13: C is read before it is written"));
  EXPECT_THAT(body("        for i in range(4):\n            C[i] = C[i] * 2.0\n"),
              HasSubstr("C is read before it is written"));
  EXPECT_THAT(body("        for i, j in T.grid(4):\n            C[i] = A[i, j]\n"),
              HasSubstr("line 5, column 21: 2 loops of 1 extents"));
  EXPECT_THAT(body("        for i in T.parallel(4):\n            C[i] = A[i, 0]\n"),
              HasSubstr("expected range(…), T.serial(…) or T.grid(…)"));
  EXPECT_THAT(body("        for i in range(4):\n            with T.block(\"C\"):\n"
                   "                vi = T.axis.spatial(8, i * 2)\n"),
              HasSubstr("line 7"));
  EXPECT_THAT(body("        for i in range(4):\n            with T.block(\"a\"):\n"
                   "                C[i] = A[i, 0]\n            with T.block(\"b\"):\n"
                   "                C[i] = A[i, 1]\n"),
              HasSubstr("line 8, column 13: a nest of loops holds one block"));
  EXPECT_THAT(body("        for i in range(4):\n            C[i] = 1.0 / i\n"),
              HasSubstr("/ of float32 and int32"));
  EXPECT_THAT(body("        for i in range(4):\n            C[i] = A[i, i / 2]\n"),
              HasSubstr("/ of integers; // is the division"));
  EXPECT_THAT(
      body("        for i in range(4):\n            C[i] = T.Select(0 < i < 3, 1.0, 2.0)\n"),
      HasSubstr("parentheses around one of two comparisons"));
  EXPECT_THAT(body("        for i in range(4):\n            C[i] = i\n"),
              HasSubstr("a int32 for an element that is float32"));
  EXPECT_THAT(body("        for i in range(m):\n            C[i] = A[i, 0]\n"),
              HasSubstr("line 5, column 24: m is a symbol"));
  EXPECT_THAT(body("        B = T.alloc_buffer((4,))\n        for i in range(4):\n            C[i] "
                   "= A[i, 0]\n"),
              HasSubstr("line 5, column 9: nothing writes B"));
  EXPECT_THAT(
      body("        T.func_attr({\"schedule\": \"C.hurry(i);\"})\n        for i in range(4):\n"
           "            C[i] = A[i, 0]\n"),
      HasSubstr("\"schedule\": no schedule primitive hurry"));
  EXPECT_THAT(body("        T.func_attr({\"schedule\": 3})\n        for i in range(4):\n"
                   "            C[i] = A[i, 0]\n"),
              HasSubstr("\"schedule\" is text"));
  EXPECT_THAT(program_refusal("    def f(C: T.Buffer((4,)), A: T.Buffer((4,))):\n"
                              "        for i in range(4):\n            C[i] = A[i]\n"),
              HasSubstr("line 4, column 30: A is not written and stands behind a result"));
  EXPECT_THAT(program_refusal("    def f(a: T.handle):\n        pass\n"),
              HasSubstr("a has no T.match_buffer"));
  std::string deep = "A[i, 0]";
  for (int i = 0; i < 300; ++i) deep = "(" + deep + ")";
  EXPECT_THAT(body("        for i in range(4):\n            C[i] = " + deep + "\n"),
              HasSubstr("terms nested more than 256 levels deep"));
}

TEST_F(Script, IsToldFromRelayText) {
  EXPECT_TRUE(is_script("# text\n@tvm.script.ir_module  # so\nclass M:\n"));
  EXPECT_TRUE(is_script("  @I.ir_module\n"));
  EXPECT_FALSE(is_script("def @main(%x: float32) {\n  @ir_module(%x)\n}"));
  EXPECT_FALSE(is_script(""));
  EXPECT_TRUE(parse_module_text("program @f { param x: float32[2]; result y[i:2] = x[i]; }").ok());
}

// Python's words as names of attributes.
TEST_F(Script, KeywordsOfPythonHaveALineBehindThem) {
  register_placement_ops();
  const Module module =
      from_relay("def @main(%x: float32) { device_copy(%x, from=\"cpu:0\", to=\"gpu:0\") }");
  EXPECT_THAT(to_script(module).value(),
              HasSubstr("R.device_copy(x, from_=\"cpu:0\", to=\"gpu:0\")"));
  expect_script_round_trip(module);
}

TEST_F(Script, WhatItCannotSayIsRefused) {
  const Module module = from_relay(
      "program @f { param x: float32[4]; result y[i:4] = x[i]; update y[i] = set() y[i] + x[i]; }");
  EXPECT_EQ(to_script(module).status().to_string(),
            "f: stage y: set() of what is a sum, product, max or min with the element");
  Module named;
  named.functions["a-b"] = make_function({}, make_scalar<float>(1));
  EXPECT_THAT(to_script(named).status().to_string(), HasSubstr("\"a-b\" is no name in script"));
}

}  // namespace
}  // namespace collage::tensor_program
