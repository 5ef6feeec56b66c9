// Runs every variant native offers for a function and compares with the interpreter.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "backend/native/kernel_variants.h"
#include "backend/variant.h"
#include "ir/expr.h"

namespace collage::native {

struct CheckOptions {
  double tolerance = 2e-5;          // of the largest output
  double relaxed_tolerance = 2e-4;  // of variants whose algorithm costs digits (Winograd)
  int least_variants = 1;
  std::map<std::string, std::string> target_options = {};
  bool integers = false;  // small integer inputs: products and sums must be exact,
                          // but for relaxed variants
  bool lowered = false;   // of variants that need RoundingLimit::kAny, instead of the others
  bool every_width =
      false;  // schedules of processors with AVX2 and with AVX-512, not of this alone
};

/// Inputs are seeded random values in (-2, 2), or small integers.
void check_function(const Function& function, const CheckOptions& options = {});

/// The variant of that name, which is its schedule in the row too: of kStages if no other is said.
Variant scheduled(const std::string& schedule, const Function& function,
                  std::string_view row = kStages);

/// Those that a row of the kernel table has of the function.
std::vector<Variant> variants_of(const Function& function, std::string_view row);

/// Of one variant alone, whether or not native offers it.
void check_variant(const Function& function, const Variant& variant,
                   const CheckOptions& options = {});

/// The same of all, with given inputs.
void check_with_inputs(const Function& function, const std::vector<Tensor>& inputs,
                       const CheckOptions& options = {});

// Whether native offers any variant; a refusal must say why.
bool check_supported(const Function& function);

Expr var(const std::string& name, Shape shape, DType dtype = DType::kFloat32);
/// A constant of seeded random values.
Expr weights(Shape shape, bool integers = false);
Expr call(std::string_view op, std::vector<Expr> args, Attrs attrs = {});
/// A call of the tensor program with that text.
Expr program_call(std::vector<Expr> args, const std::string& text);
Function function(std::vector<Expr> params, Expr body);

}  // namespace collage::native
