#include "backend/native/codegen/code_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>

#include "backend/native/codegen/halide_guard.h"
#include "backend/native/codegen/linker.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/user_seal.h"

namespace collage::native {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSealDigits = 64;

std::atomic<int64_t> compiled{0};
thread_local std::optional<Halide::Target> assumed_target;  // none: this processor's

/// Halide prefetches past the second-level cache (`prefetchnta`): what is evicted from the first
/// would be read from memory again.
std::string prefetching_into_caches(std::string assembly) {
  constexpr std::string_view past = "prefetchnta", into = "prefetcht0";
  for (size_t at = 0; (at = assembly.find(past, at)) != std::string::npos; at += into.size())
    assembly.replace(at, past.size(), into);
  return assembly;
}

Halide::Target target_of(const CodePlatform& platform, const BuiltPipeline& built) {
  Halide::Target target = platform.target.with_feature(Halide::Target::NoRuntime)
                              .with_feature(Halide::Target::NoBoundsQuery);
  if (!built.checked) target.set_feature(Halide::Target::NoAsserts);
  if (built.strict) target.set_feature(Halide::Target::StrictFloat);
  return target;
}

/// Where writing to a file fails, LLVM ends the process: it is given files in memory alone.
Result<std::string> text_of(const CodePlatform& platform, BuiltPipeline built, PipelineText form) {
  const Halide::Target target = target_of(platform, built);
  const MemoryFile file = TRY(kernel_file());
  if (form == PipelineText::kHalide) {
    built.pipeline.compile_to_lowered_stmt(file.path(), built.inputs, Halide::Text, target);
    return file.content();
  }
  built.pipeline.compile_to_assembly(file.path(), built.inputs, kSymbol, target);
  std::string text = TRY(file.content());
  return built.prefetches ? prefetching_into_caches(std::move(text)) : text;
}

Status compile_object(const CodePlatform& platform, BuiltPipeline built, const MemoryFile& object) {
  if (!built.prefetches) {
    built.pipeline.compile_to_object(object.path(), built.inputs, kSymbol,
                                     target_of(platform, built));
    return {};
  }
  const std::string text = TRY(text_of(platform, std::move(built), PipelineText::kAssembly));
  return assemble(TRY(MemoryFile::of("collage-kernel", text)), object);
}

Result<std::string> compile_library(const CodePlatform& platform,
                                    const std::function<Result<BuiltPipeline>()>& build) {
  const MemoryFile object = TRY(kernel_file());
  TRY(guarded(platform.name,
              [&]() -> Status { return compile_object(platform, TRY(build()), object); }));
  return link_kernel(object, platform.hooks);
}

bool owned_privately(const fs::path& folder) {
  struct stat info {};
  return stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & 022) == 0;
}

/// A library as a file that ends with its seal; without a path there is none.
struct KernelFile {
  fs::path path = {};
  std::function<std::string(const std::string& library)> seal = {};

  bool exists() const {
    std::error_code code;
    return !path.empty() && fs::is_regular_file(path, code);
  }
  /// Empty where there is none, or its seal is broken.
  std::string read() const {
    Result<std::string> content = exists() ? read_file(path) : Result<std::string>("");
    if (!content || content->size() <= kSealDigits) return {};
    std::string library = std::move(content).value();
    const std::string found = library.substr(library.size() - kSealDigits);
    library.resize(library.size() - kSealDigits);
    return seal(library) == found ? library : std::string();
  }
  void write(const std::string& library) const {
    if (path.empty()) return;
    const Status kept = write_file_atomically(path, library + seal(library));
    static std::once_flag once;
    if (!kept.ok())
      std::call_once(
          once, [&] { log::warn("native: compiled kernels are not kept: {}", kept.message()); });
  }
};

/// Of several machines, though a network that it is on may be away; empty: there is none.
fs::path shared_in(const fs::path& kernels) {
  std::error_code code;
  return fs::exists(fs::symlink_status(kernels / "shared", code)) ? kernels / "shared" : fs::path();
}

KernelFile shared_file(const fs::path& kernels, const std::string& name) {
  const fs::path shared = shared_in(kernels);
  if (shared.empty()) return {};
  return {shared / name, [name, user = UserSeal::of_user()](const std::string& library) {
            return user.hash_of("kernel", name, library);
          }};
}

struct Loaded {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const Code>> by_key;
};
Loaded& loaded() {
  static auto* instance = new Loaded;
  return *instance;
}

}  // namespace

Status kernels_available() {
  const Status linking = linking_available();
  if (linking.ok()) return linking;  // no cache is made for the question alone
  const Result<fs::path> cache = cache_folder();
  return cache && !shared_in(*cache / "kernels").empty() ? Status() : linking;
}

int64_t compiled_kernels() { return compiled; }

Result<std::string> text_of(const BuiltPipeline& built, PipelineText form) {
  return guarded("native", [&] { return text_of(CodePlatform(), built, form); });
}

Halide::Target kernel_target() {
  static const Halide::Target target = Halide::get_host_target();
  return assumed_target ? *assumed_target : target;
}

Halide::Target target_with(const std::vector<std::string>& features) {
  using Halide::Target;
  Target target(Target::Linux, Target::X86, 64);
  for (const auto& [feature, name] : std::initializer_list<std::pair<Target::Feature, const char*>>{
           {Target::SSE41, "sse4.2"},
           {Target::AVX, "avx"},
           {Target::F16C, "avx2"},
           {Target::FMA, "fma"},
           {Target::AVX2, "avx2"},
           {Target::AVXVNNI, "avx_vnni"},
           {Target::AVX512, "avx512cd"},
           {Target::AVX512_Skylake, "avx512vl"},
           {Target::AVX512_Cannonlake, "avx512vbmi"},
           {Target::AVX512_Zen4, "avx512bf16"},
           {Target::AVX512_SapphireRapids, "avx512fp16"}})
    target.set_feature(feature, std::count(features.begin(), features.end(), name) > 0);
  // Cooper Lake has bfloat16 without what Zen 4 has besides, Sapphire Rapids is Halide's own name.
  if (!target.has_feature(Target::AVX512_Cannonlake) ||
      target.has_feature(Target::AVX512_SapphireRapids))
    target.set_feature(Target::AVX512_Zen4, false);
  return target;
}

AssumedTarget::AssumedTarget(const std::vector<std::string>& features) {
  if (!features.empty()) assumed_target = target_with(features);
}
AssumedTarget::~AssumedTarget() { assumed_target.reset(); }

Result<std::shared_ptr<const Code>> CodeCache::get(
    const std::string& key, const std::function<Result<BuiltPipeline>()>& build) const {
  {
    std::lock_guard lock(loaded().mutex);
    if (auto code = loaded().by_key[key].lock()) return code;
  }
  const std::string name = platform_.name + "-" + sha256_hex(key).substr(0, 40) + ".so";
  KernelFile own, shared;
  if (!folder_.empty() && owned_privately(folder_)) {
    own = {fs::path(folder_) / name, [](const std::string& text) { return sha256_hex(text); }};
    shared = shared_file(folder_, name);
  }
  std::string library = own.read();
  if (library.empty()) {
    library = shared.read();
    if (library.empty()) {
      if (!shared.path.empty()) TRY(linking_available().with_context("nobody built " + name));
      library = TRY(compile_library(platform_, build));
      ++compiled;
      shared.write(library);
    }
    own.write(library);
  } else if (!shared.exists()) {
    shared.write(library);
  }
  auto bytes = std::make_shared<const std::string>(std::move(library));
  std::shared_ptr<const Code> code =
      TRY(Code::load({{bytes, bytes->data()}, bytes->size()}, platform_.hooks));
  std::lock_guard lock(loaded().mutex);
  loaded().by_key[key] = code;
  return code;
}

}  // namespace collage::native
