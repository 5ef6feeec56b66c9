// What tests of tensor programs do with their text.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "ir/structural.h"
#include "ir/text_printer.h"
#include "tensor_program/program_text.h"

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

}  // namespace collage::tensor_program
