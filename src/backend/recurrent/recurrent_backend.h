// Backend "recurrent": nn.rnn, nn.gru and nn.lstm in one kernel each, by vectors of AVX-512 or
// AVX2: constant weights and biases, the operators' own activations, sequences of equal length; of
// nn.gru where the reset comes behind the product (linear_before_reset).
#pragma once

#include <memory>

#include "backend/backend.h"

namespace collage {

std::unique_ptr<Backend> make_recurrent_backend();

}  // namespace collage
