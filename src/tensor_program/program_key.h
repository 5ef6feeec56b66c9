// Returns the text that determines compiled code: a program without the values of its constants,
// and further terms. A term that stands in several places is written once, so that the text is no
// longer than the program; equal programs have equal texts, whatever their terms share.
#pragma once

#include <string>
#include <unordered_map>
#include <utility>

#include "tensor_program/program.h"

namespace collage::tensor_program {

class ProgramKey {
 public:
  void add(const Term& term);
  void add(Program program);
  const std::string& text() const { return text_; }

 private:
  size_t number(const Term& term);
  void shorten(Term& term);

  std::unordered_map<const TermNode*, std::pair<Term, size_t>> seen_;
  std::unordered_map<std::string, size_t> numbers_;  // by what is written of a term
  std::string text_;
};

}  // namespace collage::tensor_program
