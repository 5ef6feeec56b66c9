#include "tensor_program/symbols.h"

#include "tensor_program/program_text.h"
#include "tensor_program/simplify.h"

namespace collage::tensor_program {
namespace {

/// Calls `visit` with every extent of the program that is over symbols, and its number.
template <typename Visit>
Status for_each_extent(Program& program, const Visit& visit) {
  for (Buffer& buffer : program.buffers)
    for (size_t d = 0; d < buffer.sizes.size(); ++d)
      TRY(visit(buffer.sizes[d], buffer.type.shape[d], int64_t{1}));
  for (Stage& stage : program.stages) {
    for (Axis& axis : stage.axes) TRY(visit(axis.size, axis.extent, int64_t{1}));
    for (Update& update : stage.updates)
      for (Axis& axis : update.over) TRY(visit(axis.size, axis.extent, int64_t{0}));
  }
  return {};
}

}  // namespace

Symbols values_of(const Program& program) {
  Symbols values;
  for (const Symbol& symbol : program.symbols) values[symbol.name] = symbol.value;
  return values;
}

Term extent_term(const Term& size, int64_t extent) {
  return size.defined() ? size : integer_constant(extent, DType::kInt32);
}

Result<Program> with_values(Program program, const Symbols& values) {
  for (Symbol& symbol : program.symbols) {
    const auto found = values.find(symbol.name);
    if (found == values.end()) return bad_model("no value of {}", symbol.name);
    symbol.value = found->second;
  }
  TRY(for_each_extent(program, [&](Term& size, int64_t& extent, int64_t least) -> Status {
    if (!size.defined()) return {};
    const auto value = value_of(size, values);
    if (!value || *value < least)
      return bad_model("{} is no extent for these values", term_to_string(size));
    extent = *value;
    return {};
  }));
  return program;
}

Program without_symbols(Program program) {
  const Symbols values = values_of(program);
  const auto number = [&](Term& term) {
    if (!term.defined()) return;
    term = rewrite(term, [&](const Term& t) {
      const auto found = t->op == TermOp::kVar ? values.find(t->name) : values.end();
      return found == values.end() ? t : integer_constant(found->second, DType::kInt32);
    });
  };
  (void)for_each_extent(program, [](Term& size, int64_t&, int64_t) {
    size = {};
    return Status();
  });
  for (Buffer& buffer : program.buffers) buffer.sizes.clear();
  for (Stage& stage : program.stages) {
    number(stage.value);
    for (Update& update : stage.updates) {
      for (Term& index : update.at) number(index);
      number(update.value);
    }
  }
  for (Primitive& step : program.schedule) {
    number(step.size);
    if (!step.size.defined()) continue;
    step.number = known_integer(step.size).value_or(1);
    step.size = {};
  }
  program.symbols.clear();
  return program;
}

}  // namespace collage::tensor_program
