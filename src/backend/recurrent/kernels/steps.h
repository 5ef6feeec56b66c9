// The arithmetic of a recurrent layer: a layer's hidden units in panels of 16, each with all of its
// gates, so that whoever computes a panel's products updates its state too. What passes from panel
// to panel is the state of the step before.
#pragma once

#include <cstdint>

namespace collage::recurrent {

inline constexpr int64_t kPanel = 16;

/// nn.rnn (1 gate), nn.gru (3: update, reset, candidate; linear before reset) or nn.lstm (4: input,
/// output, forget, cell), with the operator's own activations.
struct Layer {
  int64_t gates = 1, directions = 1, steps = 1, batch = 1, inputs = 1, hidden = 1;
  bool reverse = false;  ///< of a single direction; the second of two always is
  bool relu = false;     ///< of nn.rnn, in place of tanh

  int64_t panels() const { return (hidden + kPanel - 1) / kPanel; }  ///< of a direction
  int64_t padded() const { return panels() * kPanel; }
  int64_t width() const { return gates * kPanel; }  ///< floats of a row of a panel
  /// Packed constants of a panel: input weights (inputs, gates, 16), recurrent weights (hidden,
  /// gates, 16), what a sum begins with (gates, 16), what the candidate's recurrent sum begins with
  /// (16).
  int64_t packed() const { return (inputs + hidden + 1) * width() + kPanel; }
  int64_t packed_floats() const { return directions * panels() * packed(); }
  /// Steps whose products with inputs are made at once.
  int64_t chunk() const;
  /// Products of a chunk (panels, steps, batch, gates, 16), two states and a cell (batch, hidden).
  int64_t workspace_floats() const;
  bool operator==(const Layer&) const = default;
};

/// The arrays of one run; `h0` and `c0` are (directions, batch, hidden), as `h` and `c` are.
struct Arrays {
  const float* packed = nullptr;
  const float* data = nullptr;  ///< (steps, batch, inputs)
  const float* h0 = nullptr;
  const float* c0 = nullptr;  ///< of nn.lstm, as `c`
  float* y = nullptr;         ///< (steps, directions, batch, hidden)
  float* h = nullptr;
  float* c = nullptr;
  float* workspace = nullptr;
};

/// Functions of one panel, numbered through both directions. Steps are counted in the order of
/// computing: of a reverse direction 0 is the last.
struct PanelCode {
  /// Sets the states that step 0 reads.
  void (*begin)(const Layer& layer, const Arrays& arrays, int64_t panel);
  /// Makes the products of inputs with weights for steps [first, first + count).
  void (*multiply)(const Layer& layer, const Arrays& arrays, int64_t panel, int64_t first,
                   int64_t count);
  /// Computes step `step` of the chunk that begins at `first`. All panels of the step before have
  /// to be done.
  void (*advance)(const Layer& layer, const Arrays& arrays, int64_t panel, int64_t first,
                  int64_t step);
};

/// Returns the code by vectors of 16 (AVX-512) or 8 numbers (AVX2 and FMA), which give equal bits;
/// null if this processor lacks the instructions.
const PanelCode* panel_code(int64_t gates, bool wide);

}  // namespace collage::recurrent
