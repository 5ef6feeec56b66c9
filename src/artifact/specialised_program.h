// A program of several shapes, of a file (specialisations.h).
#pragma once

#include <memory>
#include <vector>

#include "artifact/program_impl.h"
#include "artifact/specialisations.h"

namespace collage::internal {

struct SpecialisedProgram : ProgramImpl {
  explicit SpecialisedProgram(std::shared_ptr<LoadedSpecialisations> file);
  std::vector<SpecialisationInfo> specialisations() const override;
  Result<std::unique_ptr<ContextImpl>> make_context() const override;
  const std::shared_ptr<LoadedSpecialisations> loaded;
};

}  // namespace collage::internal
