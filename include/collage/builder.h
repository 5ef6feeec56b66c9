// Builds a module statement by statement: graph functions that call operators, tensor programs,
// functions of libraries and one another. Programs are objects with a schedule, made of text or of
// what an operator computes.
//
//   collage::ModuleBuilder builder;
//   auto x = *collage::Expression::parameter("x", collage::DType::kFloat32, {8, 16});
//   builder.begin("main", {x});
//   auto h = *builder.emit(*collage::Expression::call("nn.relu", {x}));
//   auto s = *builder.emit_te("nn.softmax", {h}, {{"axis", int64_t{-1}}});
//   builder.emit_packed("mine.log", {s});
//   builder.output(s);
//   collage::Model model = *builder.model();
//
// Calls with effects keep the order in which they are emitted (docs/modules.md).
#pragma once

#include <collage/functions.h>
#include <collage/module.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace collage {

namespace internal {
struct TensorProgramImpl;
struct ModuleBuilderImpl;
}  // namespace internal

// A tensor program without symbols (docs/tensor-programs.md). Copies are cheap.
class TensorProgram {
 public:
  // "program { … }". kBadModel, with line and column: it is malformed.
  static Result<TensorProgram> parse(const std::string& text);
  // What an operator, or a function of operators, computes; without a schedule. kUnsupported: no
  // program says it.
  static Result<TensorProgram> emit(const std::string& op, const std::vector<ArrayType>& arguments,
                                    const Expression::Attributes& attributes = {});
  static Result<TensorProgram> emit(const Expression& function);

  std::string text() const;
  std::vector<TensorInfo> parameters() const;
  std::vector<TensorInfo> results() const;
  // The steps of its schedule, as in its text: "C.parallel(i);".
  std::vector<std::string> schedule() const;
  // Returns the program with this schedule. kBadModel: a step does not fit it.
  Result<TensorProgram> scheduled(const std::vector<std::string>& steps) const;

  explicit TensorProgram(std::shared_ptr<const internal::TensorProgramImpl> impl)
      : impl_(std::move(impl)) {}
  const internal::TensorProgramImpl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const internal::TensorProgramImpl> impl_;
};

// Programs and functions of libraries become definitions of the module where they are first called;
// equal ones are one. Everything between begin and output belongs to one graph function.
class ModuleBuilder {
 public:
  ModuleBuilder();
  ~ModuleBuilder();
  ModuleBuilder(ModuleBuilder&&) noexcept;
  ModuleBuilder& operator=(ModuleBuilder&&) noexcept;

  // kUsage: the name is taken, another function is open, or a parameter is none.
  Status begin(const std::string& name, const std::vector<Expression>& parameters,
               const Expression::Attributes& attributes = {});
  // A block without effects, which keep their order: kUsage where one is emitted inside.
  Status begin_dataflow();
  Status end_dataflow();

  // Says that the value is computed here, and returns it.
  Result<Expression> emit(const Expression& value);
  // Calls a program, which the module names `name` or alike.
  Result<Expression> emit_te(const TensorProgram& program, const std::vector<Expression>& arguments,
                             const std::string& name = "program");
  // Calls the program of an operator, instead of the operator.
  Result<Expression> emit_te(const std::string& op, const std::vector<Expression>& arguments,
                             const Expression::Attributes& attributes = {});
  // Calls a function by its label. `results`: what it gives; empty: its registration says.
  Result<Expression> emit_packed(const std::string& label, const std::vector<Expression>& arguments,
                                 const Expression::Attributes& attributes = {},
                                 const std::vector<ArrayType>& results = {});
  // Ends the function, and returns it by its name, for calls.
  Result<Expression> output(const Expression& result);

  // kUsage: a function is open; kBadModel: there is no @main, or the module is wrong.
  Result<Model> model() const;

 private:
  std::unique_ptr<internal::ModuleBuilderImpl> impl_;
};

}  // namespace collage
