// Functions of calls in script: the graph functions that they are, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "frontend/script/script.h"
#include "ir/text_printer.h"
#include "ops/registry.h"

namespace collage::tensor_program {
namespace {

using ::testing::HasSubstr;

/// The module as Relay text, or what is wrong with it.
std::string with_calls(const std::string& text) {
  register_all_ops();
  const Result<Module> module = parse_script(text);
  return module.ok() ? to_text(*module) : module.status().to_string();
}

TEST(ScriptCalls, FillBuffers) {
  const std::string head = R"(
    twice = R.extern("nobody's", (R.Tensor((2,)),), R.Tuple(R.Tensor((2,)), R.Tensor((3,), "int8")))
)";
  EXPECT_EQ(with_calls("@ir_module\nclass M:\n" + head + R"(
    @T.prim_func
    def main(x: T.Buffer((2,), "float32"), out: T.Buffer((3,), "int8"), last: T.Buffer((2,))):
        """Everything that a call fills."""
        w = T.alloc_const([1.0, 2.0])
        a = T.alloc_stack((2,))
        b = T.alloc_buffer((3,), "int8")
        T.call_packed("sum of two", w, x, a)
        call_packed(twice, a, a, b)
        call_packed(twice, a, last, out)
)"),
            R"(#[version = "0.0.5"]
extern @sum_of_two(Tensor[(2), float32], Tensor[(2), float32]) -> Tensor[(2), float32] = "sum of two";
extern @twice(Tensor[(2), float32]) -> (Tensor[(2), float32], Tensor[(3), int8]) = "nobody's";
def @main(%x: Tensor[(2), float32]) -> (Tensor[(3), int8], Tensor[(2), float32]) {
  %0 = @sum_of_two(meta[relay.Constant][0] /*Tensor[(2), float32]*/, %x);
  %1 = @twice(%0);
  %2 = @twice(%1.0);
  (%2.1, %2.0)
}

#[metadata]
{
  "relay.Constant": [
    {"dtype": "float32", "shape": [2], "values": [1.0, 2.0]}
  ]
}
)");
  const auto calls = [&](const std::string& body) {
    return with_calls(
        "@ir_module\nclass M:\n    f = R.extern(\"f\", (R.Tensor((2,)),), R.Tensor((2,)))\n"
        "    @T.prim_func\n    def main(x: T.Buffer((2,)), out: T.Buffer((2,))):\n" +
        body);
  };
  EXPECT_THAT(calls("        a = T.alloc_stack((2,))\n        call_packed(f, a, out)\n"),
              HasSubstr("line 7, column 24: nothing has filled a yet"));
  EXPECT_THAT(calls("        call_packed(f, x)\n"),
              HasSubstr("f takes 1 and fills 1 buffers, not 1 in all"));
  EXPECT_THAT(calls("        call_packed(f, x, y)\n"), HasSubstr("there is no y here"));
  EXPECT_THAT(calls("        call_packed(g, x, out)\n"), HasSubstr("there is no g in the module"));
  EXPECT_THAT(calls("        call_packed(f, out, x)\n"),
              HasSubstr("out is not filled and stands behind a result"));
  EXPECT_THAT(calls("        call_packed(f, x, x)\n"), HasSubstr("x is read, and filled later"));
  EXPECT_THAT(calls("        a = T.alloc_stack((3,))\n        call_packed(f, x, a)\n"),
              HasSubstr("a is a Tensor[(3), float32], and filled with a Tensor[(2), float32]"));
  EXPECT_THAT(calls("        a = T.alloc_stack((2,))\n        call_packed(f, x, a)\n"),
              HasSubstr("no parameter is filled"));
  EXPECT_THAT(calls("        x = T.alloc_stack((2,))\n        call_packed(f, x, out)\n"),
              HasSubstr("x stands twice"));
}

}  // namespace
}  // namespace collage::tensor_program
