// What tests of tensor programs do with their text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/structural.h"
#include "ir/text_printer.h"
#include "tensor_program/program_text.h"
#include "tensor_program/script/script.h"

namespace collage::tensor_program {

inline Program parsed(const std::string& text) {
  auto program = parse_program(text);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  return program.ok() ? std::move(program).value() : Program();
}

inline void expect_round_trip(const std::string& text) {
  const Program program = parsed(text);
  EXPECT_EQ(program.to_string(), text);
  EXPECT_TRUE(equal(program, parsed(program.to_string())));
}

inline std::string refusal(const std::string& text) {
  auto program = parse_program(text);
  EXPECT_FALSE(program.ok()) << program->to_string();
  return program.ok() ? "" : program.status().to_string();
}

/// The module, printed as script and read again.
inline void expect_script_round_trip(const Module& module) {
  const Result<std::string> text = to_script(module);
  ASSERT_TRUE(text.ok()) << text.status().to_string() << "\n" << to_text(module);
  const Result<Module> again = parse_script(*text);
  ASSERT_TRUE(again.ok()) << again.status().to_string() << "\n" << *text;
  ASSERT_TRUE(structural_equal(module, *again)) << *text << to_text(module) << to_text(*again);
  ASSERT_EQ(to_script(*again).value(), *text);
}

}  // namespace collage::tensor_program
