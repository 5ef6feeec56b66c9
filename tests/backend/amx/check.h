// Checks every variant that the backends amx and vnni offer for a function.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "backend/check.h"

namespace collage::testing {

const Backend& amx_backend();
const Backend& vnni_backend();

// Tests that run kernels: skipped, with the reason, on processors without the matrix unit.
class MatrixUnit : public ::testing::Test {
 protected:
  void SetUp() override;
};
// Those that do on processors that have neither the unit nor dot products of integers.
class Contractions : public ::testing::Test {
 protected:
  void SetUp() override;
};
template <typename T>
class ContractionsWith : public Contractions, public ::testing::WithParamInterface<T> {};
class DotProducts : public ::testing::Test {
 protected:
  void SetUp() override;
};

// Variants of three products, of six ("amx -parts=3") and in bfloat16, each on one thread and on
// three, to within what each promises. Fails the test where one of them is not offered. Inputs are
// random where none are given.
void check_amx(const Function& function, std::vector<Tensor> inputs = {});
// Those of amx and of vnni, as far as the processor has what they need.
void check_contraction(const Function& function, std::vector<Tensor> inputs = {});

// The reason for which there is no variant; fails the test when there is one.
std::string refusal(const Function& function);

// The operators of each candidate.
std::vector<std::string> candidate_labels(const Function& function);

}  // namespace collage::testing
