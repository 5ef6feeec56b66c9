#include "tensor_program/program_key.h"

#include <fmt/format.h>

namespace collage::tensor_program {

/// The term's number; a line is written of each term that is new.
size_t ProgramKey::number(const Term& term) {
  if (const auto found = seen_.find(term.get()); found != seen_.end()) return found->second.second;
  std::string line = fmt::format("{} {} {:a} {} {}", static_cast<int>(term->op),
                                 dtype_name(term.dtype()), term->real, term->integer, term->name);
  for (const Term& arg : term->args) line += fmt::format(" %{}", number(arg));
  const auto [known, fresh] = numbers_.try_emplace(line, numbers_.size());
  if (fresh) text_ += fmt::format("%{} = {}\n", known->second, line);
  seen_[term.get()] = {term, known->second};
  return known->second;
}

void ProgramKey::shorten(Term& term) {
  if (term.defined()) term = var(fmt::format("%{}", number(term)), term.dtype());
}

void ProgramKey::add(const Term& term) { text_ += fmt::format("%{}\n", number(term)); }

void ProgramKey::add(Program program) {
  for (Buffer& buffer : program.buffers) buffer.value = {};
  for (Stage& stage : program.stages) {
    shorten(stage.value);
    for (Update& update : stage.updates) {
      for (Term& index : update.at) shorten(index);
      shorten(update.value);
    }
  }
  text_ += program.to_string();
}

}  // namespace collage::tensor_program
