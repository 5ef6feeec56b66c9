// Functions of the model, and graphs inside nodes, put in place of the nodes: what is computed must
// not depend on how anything is called.
#include "frontend/onnx/model_builder.h"
#include "ir/visitor.h"

namespace collage {
namespace {

using ::testing::ElementsAre;

constexpr int32_t kFloat = onnx::TensorProto::FLOAT;
constexpr int32_t kBool = onnx::TensorProto::BOOL;

NodeBuilder add_node(onnx::FunctionProto* function, const std::string& op,
                     const std::vector<std::string>& inputs,
                     const std::vector<std::string>& outputs) {
  onnx::NodeProto* node = function->add_node();
  node->set_op_type(op);
  for (const std::string& input : inputs) node->add_input(input);
  for (const std::string& output : outputs) node->add_output(output);
  return NodeBuilder(node);
}

onnx::FunctionProto* add_function(ModelBuilder& m, const std::string& name,
                                  const std::vector<std::string>& inputs,
                                  const std::vector<std::string>& outputs) {
  onnx::FunctionProto* function = m.proto().add_functions();
  function->set_name(name);
  function->set_domain("local");
  for (const std::string& input : inputs) function->add_input(input);
  for (const std::string& output : outputs) function->add_output(output);
  function->add_opset_import()->set_version(17);
  return function;
}

// scaled(x; factor) = x * factor, in a domain of its own.
onnx::FunctionProto* add_scaled(ModelBuilder& m) {
  onnx::FunctionProto* function = add_function(m, "scaled", {"in"}, {"out"});
  function->add_attribute("factor");
  onnx::NodeProto* constant = function->add_node();
  constant->set_op_type("Constant");
  constant->add_output("f");
  onnx::AttributeProto* value = constant->add_attribute();
  value->set_name("value_float");
  value->set_type(onnx::AttributeProto::FLOAT);
  value->set_ref_attr_name("factor");
  add_node(function, "Mul", {"in", "f"}, {"out"});
  return function;
}

TEST(Functions, AreInlinedWithTheirAttributes) {
  ModelBuilder m;
  add_scaled(m);
  m.input("x", {"2"});
  m.node("scaled", {"x"}, {"a"}).domain("local").name("double").real("factor", 2);
  m.node("scaled", {"a"}, {"y"}).domain("local").name("triple").real("factor", 3);
  m.output("y");
  EXPECT_THAT(m.ops(), ElementsAre("multiply", "multiply"));
  expect_values(m.run({floats({2}, {1, 5})})[0], {2}, {6, 30});
  Result<ImportedModel> model = m.import();
  EXPECT_EQ(model->module.main()->body->origin(), "triple/Mul_1");
}

TEST(Functions, ThatCallThemselvesEnd) {
  ModelBuilder m;
  onnx::FunctionProto* function = add_function(m, "again", {"in"}, {"out"});
  for (int i = 0; i < 2; ++i)  // 2^depth calls without the limit
    add_node(function, "again", {i == 0 ? "in" : "middle"}, {i == 0 ? "middle" : "out"})
        .domain("local");
  m.input("x", {"2"});
  m.node("again", {"x"}, {"y"}).domain("local");
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "functions call each other more than 32 deep");
}

TEST(Functions, WithTooManyArguments) {
  ModelBuilder m;
  add_scaled(m);
  m.input("x", {"2"});
  m.node("scaled", {"x", "x"}, {"y"}).domain("local").name("bad");
  m.output("y");
  expect_error(m.import(), ErrorCode::kBadModel, "node 'bad' (local::scaled): 2 inputs");
}

// added(a, c) = c ? a + 100 : -a, whose first branch calls its number `own`.
void add_added(ModelBuilder& m, const std::string& own) {
  ModelBuilder more(17), less(17);
  more.constant(own, Tensor::scalar<float>(100));
  more.node("Add", {"a", own}, {"q"});
  more.output("q", kFloat);
  less.node("Neg", {"a"}, {"q"});
  less.output("q", kFloat);
  add_node(add_function(m, "added", {"a", "c"}, {"y"}), "If", {"c"}, {"y"})
      .graph("then_branch", more.graph())
      .graph("else_branch", less.graph());
}

TEST(Inlining, ArgumentsDoNotMeetNamesOfBranches) {
  for (const char* argument : {"t", "q", "a", "y"}) {
    ModelBuilder m;
    add_added(m, "t");
    m.input(argument, {"2"}).constant("yes", Tensor::scalar<bool>(true));
    m.node("added", {argument, "yes"}, {"z"}).domain("local");
    m.output("z");
    expect_values(m.run({floats({2}, {1, 2})})[0], {2}, {101, 102});
  }
}

TEST(Inlining, InitializersOfTheCallerDoNotMeetNamesOfBranches) {
  ModelBuilder m;
  add_added(m, "w");
  m.input("x", {"2"}).constant("yes", Tensor::scalar<bool>(true));
  m.constant("w", floats({2}, {5, 6}));
  m.node("added", {"w", "yes"}, {"y"}).domain("local");
  m.node("Add", {"y", "x"}, {"z"});
  m.output("z");
  expect_values(m.run({floats({2}, {1, 2})})[0], {2}, {106, 108});
}

// Without names of their own the branches would read what they give.
TEST(Inlining, BranchesThatCallFunctionsMakeNoCycle) {
  ModelBuilder m, less(17), more(17);
  onnx::FunctionProto* increment = add_function(m, "increment", {"a"}, {"y"});
  add_node(increment, "Constant", {}, {"one"}).tensor("value", Tensor::scalar<float>(1));
  add_node(increment, "Add", {"a", "one"}, {"t"});
  add_node(increment, "Identity", {"t"}, {"y"});
  less.node("Neg", {"x"}, {"t"});
  less.node("increment", {"t"}, {"q"}).domain("local");
  less.output("q", kFloat);
  more.node("increment", {"x"}, {"q"}).domain("local");
  more.output("q", kFloat);
  onnx::FunctionProto* distance = add_function(m, "distance", {"x", "c"}, {"y"});
  add_node(distance, "If", {"c"}, {"y"})
      .graph("then_branch", less.graph())
      .graph("else_branch", more.graph());
  m.input("t", {"2"}).constant("yes", Tensor::scalar<bool>(true));
  m.node("distance", {"t", "yes"}, {"s"}).domain("local");
  m.node("Mul", {"s", "t"}, {"y"});
  m.output("y");
  expect_values(m.run({floats({2}, {-5, 1})})[0], {2}, {-30, 0});
}

// The inner call gives the outer's output, and both have a value "t".
TEST(Inlining, CallsThatGiveOneOutputStayApart) {
  ModelBuilder m;
  onnx::FunctionProto* inner = add_function(m, "inner", {"a"}, {"y"});
  add_node(inner, "Add", {"a", "a"}, {"t"});
  add_node(inner, "Neg", {"t"}, {"y"});
  onnx::FunctionProto* outer = add_function(m, "outer", {"a"}, {"y"});
  add_node(outer, "Abs", {"a"}, {"t"});
  add_node(outer, "inner", {"t"}, {"y"}).domain("local");
  m.input("x", {"2"});
  m.node("outer", {"x"}, {"y"}).domain("local");
  m.output("y");
  expect_values(m.run({floats({2}, {-5, 1})})[0], {2}, {-10, -2});
}

TEST(Inlining, IterationsThatCallFunctionsStayApart) {
  ModelBuilder m, body(17);
  onnx::FunctionProto* square = add_function(m, "square", {"a"}, {"y"});
  add_node(square, "Identity", {"a"}, {"t"});
  add_node(square, "Mul", {"t", "a"}, {"y"});
  body.input("i", {}, onnx::TensorProto::INT64).input("go", {}, kBool).input("v", {"2"});
  body.node("square", {"v"}, {"w"}).domain("local");
  body.output("go", kBool).output("w", kFloat).output("w", kFloat).output("x", kFloat);
  m.input("x", {"2"}).constant("trips", Tensor::scalar<int64_t>(2));
  m.node("Loop", {"trips", "", "x"}, {"y", "all", "same"}).graph("body", body.graph());
  m.output("y").output("all").output("same");
  const std::vector<Tensor> outputs = m.run({floats({2}, {2, 3})});
  expect_values(outputs[0], {2}, {16, 81});
  expect_values(outputs[1], {2, 2}, {4, 9, 16, 81});
  expect_values(outputs[2], {2, 2}, {2, 3, 2, 3});
}

// Names that look like those made while inlining.
TEST(Inlining, TheModelsNamesDoNotMeetThoseMade) {
  for (const std::string name : {"z#0/t", "z#q", "z/q", "z#z#0/q", "z#+0/t"}) {
    ModelBuilder m;
    add_added(m, "t");
    m.input("x", {"2"}).constant("yes", Tensor::scalar<bool>(true));
    m.node("Neg", {"x"}, {name});
    m.node("added", {name, "yes"}, {"z"}).domain("local");
    m.node("Add", {"z", name}, {"sum"});
    m.output("sum");
    expect_values(m.run({floats({2}, {1, 2})})[0], {2}, {98, 96});
  }
}

TEST(Inlining, ANameInsideHidesOneOutsideInItsOwnGraphAlone) {
  ModelBuilder m, hides(17), plain(17);
  hides.constant("t", Tensor::scalar<float>(100));
  hides.node("Add", {"x", "t"}, {"q"});
  hides.output("q", kFloat);
  plain.node("Neg", {"x"}, {"q"});
  plain.output("q", kFloat);
  ModelBuilder branch(17);
  branch.node("If", {"yes"}, {"r"})
      .graph("then_branch", hides.graph())
      .graph("else_branch", plain.graph());
  branch.node("Add", {"r", "t"}, {"s"});
  branch.output("s", kFloat);
  m.input("x", {"2"}).constant("yes", Tensor::scalar<bool>(true));
  m.node("If", {"yes"}, {"y"})
      .graph("then_branch", branch.graph())
      .graph("else_branch", plain.graph());
  m.node("Abs", {"x"}, {"t"});  // behind the only node that reads it
  m.output("y");
  expect_values(m.run({floats({2}, {-1, 2})})[0], {2}, {100, 104});
}

TEST(Inlining, AttributesReachNodesOfBranches) {
  ModelBuilder m, then(17), otherwise(17);
  onnx::AttributeProto* alpha = then.node("LeakyRelu", {"a"}, {"q"}).proto().add_attribute();
  alpha->set_name("alpha");
  alpha->set_type(onnx::AttributeProto::FLOAT);
  alpha->set_ref_attr_name("slope");
  then.output("q", kFloat);
  otherwise.node("Neg", {"a"}, {"q"});
  otherwise.output("q", kFloat);
  onnx::FunctionProto* function = add_function(m, "leaky", {"a", "c"}, {"y"});
  function->add_attribute("slope");
  add_node(function, "If", {"c"}, {"y"})
      .graph("then_branch", then.graph())
      .graph("else_branch", otherwise.graph());
  m.input("x", {"2"}).constant("yes", Tensor::scalar<bool>(true));
  m.node("leaky", {"x", "yes"}, {"y"}).domain("local").real("slope", 0.5);
  m.output("y");
  expect_values(m.run({floats({2}, {-4, 2})})[0], {2}, {-2, 2});
}

}  // namespace
}  // namespace collage
