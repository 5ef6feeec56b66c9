#include "compiler/saved_program.h"

#include <fmt/format.h>

#include <cstring>

#include "artifact/artifact_file.h"
#include "artifact/damage.h"
#include "artifact/zip.h"
#include "base/files.h"
#include "base/resident_memory.h"
#include "compiler/run_on_threads.h"
#include "runtime/on_threads.h"
#include "verify/synthetic.h"

namespace collage::testing {

namespace {

// Bytes that a context may take beside its arena: what libraries keep of a run, and allocators of a
// thread. A copy of the workloads' weights would be more.
constexpr size_t kBesideArena = size_t{16} << 20;

Result<std::string> run_all(const Model& model, const ProgramOptions& options,
                            const std::filesystem::path& file, int contexts, int runs) {
  Program program = TRY(Program::compile(model, options));
  TRY(program.save(model, file));
  const Program artifact = TRY(Program::load(file));
  if (artifact.inputs().size() != program.inputs().size()) return std::string("other inputs");
  std::vector<std::vector<Tensor>> inputs, expected;
  std::vector<Context> ready;
  for (int c = 0; c < contexts; ++c) {
    inputs.push_back(
        TRY(synthetic_inputs(model.impl().module.main(), static_cast<uint64_t>(c) + 1)));
    expected.push_back(TRY(program.run(inputs.back())));
  }
  const size_t before = anonymous_bytes();
  for (int c = 0; c < contexts; ++c) ready.push_back(TRY(artifact.make_context()));
  std::vector<std::string> failures(static_cast<size_t>(contexts));
  on_threads(contexts, [&](int t) {
    const auto own = static_cast<size_t>(t);
    for (int run = 0; run < runs && failures[own].empty(); ++run) {
      const Result<std::vector<Tensor>> outputs = ready[own].run(inputs[own]);
      if (!outputs)
        failures[own] = outputs.status().to_string();
      else if (!same_bits(*outputs, expected[own]))
        failures[own] = fmt::format("run {} of context {} gives other bits", run, t);
    }
  });
  for (const std::string& failure : failures)
    if (!failure.empty()) return failure;
  const size_t now = anonymous_bytes(), arena = program.impl().plan->arena_bytes;
  if (now > before + static_cast<size_t>(contexts) * (arena + kBesideArena))
    return fmt::format("{} contexts take {} bytes, their arenas {} each", contexts, now - before,
                       arena);
  return std::string();
}

}  // namespace

std::string run_saved(const Model& model, const ProgramOptions& options,
                      const std::filesystem::path& file, int contexts, int runs) {
  const Result<std::string> result = run_all(model, options, file, contexts, runs);
  return result ? *result : result.status().to_string();
}

int accepted_damages(const std::filesystem::path& path, uint32_t count) {
  const std::string file = read_file(path).value();
  const Manifest manifest = read_zip(file).value();
  int accepted = 0;
  for (uint32_t number = 0; number < count; ++number) {
    const std::string bad = damaged(file, manifest, number);
    if (bad == file) continue;
    Status status = Program::load(bad.data(), bad.size()).status();
    if (status.ok()) {  // what running does not read is refused when it is asked for
      const auto opened = ArtifactFile::from_memory(bad.data(), bad.size(), nullptr).value();
      for (const ManifestEntry& entry : manifest.entries)
        if (status.ok()) status = opened->entry(entry.name).status();
      if (status.ok()) status = opened->check_hashes();
    }
    const bool refused = !status.message().empty() && status.code() != ErrorCode::kInternal;
    accepted += refused ? 0 : 1;
  }
  return accepted;
}

}  // namespace collage::testing
