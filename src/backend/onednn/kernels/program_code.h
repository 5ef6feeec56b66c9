// ProgramCode: the immutable state that a program's runs share: its steps, the values they read and
// write, and its constants.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "backend/onednn/kernels/library.h"
#include "runtime/kernel.h"

namespace collage::onednn {

struct Slot {
  enum class Source { kInput, kOutput, kWorkspace, kConstant };
  Source source = Source::kInput;
  size_t position = 0;  // of the input or output
  size_t offset = 0;    // bytes into the buffer or the workspace
  Desc desc;
  SharedBytes constant = {};
};

// A primitive; or, if that is empty, an output to zero.
struct ProgramStep {
  dnnl::primitive primitive = {};
  std::vector<std::pair<int, size_t>> args = {};  // DNNL_ARG_…, slot
  Masks masks = {};                               // of its scales and zero points
  size_t clear_position = 0, clear_bytes = 0;
};

struct ProgramCode {
  std::vector<Slot> slots;
  std::vector<ProgramStep> steps;
  size_t temporaries = 0;  // the workspace: temporaries, then one scratchpad that all steps share
  size_t scratchpad = 0;

  size_t constant_bytes() const;
};

std::unique_ptr<Kernel> make_program(std::shared_ptr<const ProgramCode> code);

Result<SavedKernel> save_program(const ProgramCode& code);
Result<std::shared_ptr<Kernel>> load_program(const SavedKernel& saved, int threads);

}  // namespace collage::onednn
