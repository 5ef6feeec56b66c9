// Script round trips: every operator's cases and their programs, and random modules.
#include <gtest/gtest.h>

#include <random>

#include "frontend/script/round_trip.h"
#include "ir/op.h"
#include "ops/cases.h"
#include "ops/registry.h"
#include "tensor_program/call.h"
#include "tensor_program/emit/emit.h"
#include "tensor_program/module_programs.h"
#include "tensor_program/parsing.h"

namespace collage::tensor_program {
namespace {

TEST(RandomScript, OperatorsAndTheirProgramsRoundTrip) {
  register_all_ops();
  size_t programs = 0, refused = 0;
  for (const OpCase& op_case : op_cases()) {
    SCOPED_TRACE(op_case.to_string());
    const OpCaseFunction built = build_case(op_case, 3).value();
    expect_script_round_trip(Module(built.function));
    Result<Program> program = emit(built.function);
    if (!program || !check_callable(*program).ok()) continue;
    ++programs;
    Module module;
    module.abstract_functions["emitted"] = program_function(std::move(program).value());
    const Result<std::string> text = to_script(module);
    if (text.ok()) {
      expect_script_round_trip(module);
    } else {
      ++refused;
      EXPECT_EQ(text.status().code(), ErrorCode::kUnsupported) << text.status().to_string();
    }
  }
  EXPECT_GT(programs, 300U);
  EXPECT_LT(refused, 10U);
}

/// Random modules: programs of several stages, functions that share and nest, tuples, constants.
class RandomModule {
 public:
  explicit RandomModule(uint64_t seed) : rng_(seed) {}

  Module make() {
    Module module;
    for (size_t i = below(3); i > 0; --i)
      module.abstract_functions["program" + std::to_string(i)] = program_function(program());
    for (size_t i = 1 + below(2); i > 0; --i) {
      const std::string label = below(2) == 0 ? "mine.first" : "a \"b\"";
      const Type result = below(2) == 0 ? vector() : Type::tuple({vector(), vector()});
      module.abstract_functions["extern" + std::to_string(i)] =
          external_function({label, {vector()}, result, attributes(), any_updates()}).value();
    }
    module.functions["helper"] = function(module, false);
    module.functions["main"] = function(module, true);
    return module;
  }

 private:
  size_t below(size_t n) { return rng_() % n; }
  static Type vector() { return TensorType{{6}, DType::kFloat32}; }
  Ints any_updates() { return below(3) == 0 ? Ints{0} : Ints{}; }
  Attrs attributes() {
    const std::pair<std::string, AttrValue> all[] = {
        {"k", int64_t{-3}},   {"by", 0.1},    {"text", std::string("a \"b\"")},
        {"axes", Ints{1, 2}}, {"flag", true}, {"lists", IntLists{{1}, {2, 3}}}};
    Attrs attrs;
    for (const auto& [name, value] : all)
      if (below(4) == 0) attrs.set(name, value);
    return attrs;
  }
  const char* any(std::initializer_list<const char*> names) {
    return *(names.begin() + below(names.size()));
  }

  Term term(const Program& program, const std::vector<Axis>& axes, int depth) {
    if (depth == 0 || below(5) == 0) {
      const auto index = [&]() -> Term {
        const Axis& axis = axes[below(axes.size())];
        return below(3) == 0 ? Term(5) - var(axis.name) : var(axis.name);
      };
      if (below(4) == 0) return constant(static_cast<double>(below(9)) * 0.3, DType::kFloat32);
      const size_t count = program.buffers.size() + program.stages.size(), at = below(count);
      const std::string name = at < program.buffers.size()
                                   ? program.buffers[at].name
                                   : program.stages[at - program.buffers.size()].name;
      std::vector<Term> indices;
      for (size_t d = program.type_of(name).shape.size(); d > 0; --d) indices.push_back(index());
      return load(name, DType::kFloat32, indices);
    }
    const auto inside = [&] { return term(program, axes, depth - 1); };
    switch (below(8)) {
      case 0:
        return inside() + inside();
      case 1:
        return inside() - inside();
      case 2:
        return inside() * inside();
      case 3:
        return max(inside(), min(inside(), inside()));
      case 4:
        return select(inside() < inside() && !(inside() == inside()), inside(), inside());
      case 5:
        return -inside();
      case 6:
        return cast(DType::kFloat32,
                    cast(DType::kInt64, inside()) % integer_constant(3, DType::kInt64));
      default:
        return tanh(inside() / inside());
    }
  }

  Program program() {
    Program program;
    program.buffers.push_back({"A", {{6}, DType::kFloat32}});
    program.buffers.push_back({"B", {{6, 6}, DType::kFloat32}});
    const size_t stages = 1 + below(4);
    for (size_t s = 0; s < stages; ++s) {
      Stage stage;
      stage.name = "s" + std::to_string(s);
      stage.is_result = s + 1 == stages;
      stage.axes = {{"i", 6}};
      if (!stage.is_result && below(2) == 0) stage.axes.push_back({"j", 6});
      if (below(2) == 0) stage.value = term(program, stage.axes, 3);
      while (!stage.value.defined() ? stage.updates.empty() || below(2) == 0
                                    : below(3) == 0 && stage.updates.size() < 3) {
        Update update;
        std::vector<Axis> axes = stage.axes;
        update.at = stage.indices();
        for (const char* name : {"r", "k"})
          if (below(2) == 0) update.over.push_back({name, below(2) == 0 ? 6 : 4});
        if (!update.over.empty() && below(3) == 0) update.at[0] = var(update.over[0].name);
        if (below(4) == 0) std::swap(update.at.front(), update.at.back());
        axes = walked_axes(stage, update);
        update.combine = static_cast<Combine>(below(5));
        update.value = term(program, axes, 2);
        stage.updates.push_back(update);
      }
      program.stages.push_back(stage);
    }
    EXPECT_TRUE(verify(program).ok()) << verify(program).to_string();
    return program;
  }

  Function function(const Module& module, bool calls) {
    std::vector<Expr> params;
    for (size_t i = 0; i < 2; ++i)
      params.push_back(make_var(any({"x", "in:0", "lv0", "def"}), vector()));
    std::vector<Expr> values = params;
    for (size_t i = 0; i < 2 + below(9); ++i) values.push_back(step(module, values, calls));
    Attrs attrs;
    if (below(3) == 0) attrs.set("Compiler", std::string("native"));
    if (below(3) == 0) attrs.set("factor", 1.0);
    if (below(2) == 0) return make_function(params, values.back(), attrs);
    return make_function(params, make_tuple({values.back(), values[below(values.size())]}), attrs);
  }

  Expr step(const Module& module, const std::vector<Expr>& values, bool calls) {
    const auto pick = [&] {
      Expr value = values[values.size() - 1 - below(std::min<size_t>(values.size(), 4))];
      while (!value->type().is_tensor()) value = make_tuple_get_item(value, below(2)).value();
      return value;
    };
    const auto call = [](const char* op, std::vector<Expr> args, Attrs attrs = {}) {
      return make_call(op, std::move(args), std::move(attrs)).value();
    };
    switch (below(calls ? 9 : 4)) {
      case 0:
        return call(any({"tanh", "nn.relu", "exp"}), {pick()});
      case 1:
        return call("add", {pick(), pick()});
      case 2:
        return call("multiply", {pick(), make_scalar<float>(static_cast<float>(below(7)) * 0.7f)});
      case 3:
        return call("subtract",
                    {pick(), make_constant(Tensor::from<float>({6}, {1, 2, 3, 4, 5, 6}))});
      case 4:
        return make_tuple({pick(), pick()});
      case 5: {
        const Expr p = make_var("p", vector());
        return make_function_call(make_function({p}, call("exp", {p}), {{"Primitive", int64_t{1}}}),
                                  {pick()})
            .value();
      }
      case 6:
        return call("strided_slice", {call("concatenate", {make_tuple({pick(), pick()})})},
                    {{"begin", Ints{3}}, {"end", Ints{9}}});
      case 7: {
        const Expr helper = make_global_var("helper", module.functions.at("helper")->type());
        return first(make_function_call(helper, {pick(), pick()}).value());
      }
      default: {
        auto one = module.abstract_functions.begin();
        std::advance(one, below(module.abstract_functions.size()));
        std::vector<Expr> args;
        for (const Type& param : one->second->type().params())
          args.push_back(param == vector() ? pick() : weights());
        return first(
            make_function_call(make_global_var(one->first, one->second->type()), args).value());
      }
    }
  }
  static Expr first(const Expr& value) {
    return value->type().is_tuple() ? make_tuple_get_item(value, 0).value() : value;
  }
  static Expr weights() {
    Tensor tensor = Tensor::empty(DType::kFloat32, {6, 6});
    for (int64_t i = 0; i < 36; ++i) tensor.data<float>()[i] = static_cast<float>(i) * 0.1f;
    return make_constant(tensor);
  }

  std::mt19937_64 rng_;
};

TEST(RandomScript, RandomModulesRoundTrip) {
  register_all_ops();
  size_t refused = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const Module module = RandomModule(seed).make();
    if (const Result<std::string> text = to_script(module); !text) {
      ++refused;  // set() of a sum with the element, say
      ASSERT_EQ(text.status().code(), ErrorCode::kUnsupported) << text.status().to_string();
      continue;
    }
    expect_script_round_trip(module);
    if (HasFatalFailure()) return;
  }
  EXPECT_LT(refused, 100U);
}

}  // namespace
}  // namespace collage::tensor_program
