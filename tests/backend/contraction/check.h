// Checks every variant that the backend amx offers for a function.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/check.h"
#include "backend/offer.h"

namespace collage::testing {

// The product's, or, where this processor lacks the instructions, the same sources compiled against
// a software model of them (software/).
const Backend& amx_backend();
const Backend& amx_in_software();

// The variants that round as by default, or those that need RoundingLimit::kAny.
Result<std::vector<Variant>> variants_of(const Backend& backend, const Function& function,
                                         const Target& target, CompileOptions options,
                                         bool lowered);

// How many random shapes to try of `all`: a fifth in software, which takes a hundred times as long.
int trials(int all);

// Tests that run kernels of amx.
class MatrixUnit : public ::testing::Test {};
class Contractions : public ::testing::Test {};
template <typename T>
class ContractionsWith : public Contractions, public ::testing::WithParamInterface<T> {};

// Variants of three products, of six ("amx -parts=3") and in bfloat16, each on one thread and on
// three, to within what each promises. Fails the test where one of them is not offered. Inputs are
// random where none are given.
void check_amx(const Function& function, std::vector<Tensor> inputs = {});

// The reason for which there is no variant; fails the test when there is one.
std::string refusal(const Function& function);

// The operators of each candidate.
std::vector<std::string> candidate_labels(const Function& function);

}  // namespace collage::testing
