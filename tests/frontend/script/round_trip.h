// Modules printed as script and read again.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "frontend/script/script.h"
#include "ir/structural.h"
#include "ir/text_printer.h"

namespace collage::tensor_program {

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
