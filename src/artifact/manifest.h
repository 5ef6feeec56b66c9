// The manifest of an artifact: what made it, what it needs, and where each entry lies in the file
// with its checksum (checksum.h), which is compared before the entry is used, and its SHA-256,
// which `collage verify` compares.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace collage {

// Extension of an artifact's file name.
inline constexpr char kArtifactExtension[] = ".collage";
// Names of entries.
inline constexpr char kManifestEntry[] = "manifest.json";
inline constexpr char kPlanEntry[] = "plan.json";
inline constexpr char kSpecialisationsEntry[] = "specialisations.json";
// Entries of a program that runs in stages (dynamic/saved_stages.h), and of its model.
inline constexpr char kStagesEntry[] = "stages.json", kModelEntry[] = "model.onnx";
inline constexpr char kWeightsEntry[] = "weights";
inline constexpr char kModuleEntry[] = "module.json", kModuleWeightsEntry[] = "module.weights";
inline constexpr char kReportEntry[] = "report.json";

// Version of the form of the file, its manifest, plans, specialisations and module; raised with
// every change of them (tests/saved_layouts.txt holds the forms). Kernels have versions of their
// own, their loaders'.
inline constexpr int kArtifactFormat = 4;
inline constexpr size_t kPageBytes = 4096;  // entries begin at multiples of it

struct ManifestEntry {
  std::string name;
  size_t offset = 0;  // from the file's start
  size_t bytes = 0;
  std::string checksum, sha256;
};

struct Manifest {
  std::string version;       // of Collage
  std::string model;         // the file's name
  int threads = 1;           // that kernels were made for
  bool any_threads = false;  // by default: it runs with the cores that it finds
  double max_error = 0;  // what an output may err by, as a part of its largest value; 0: float32
  std::vector<std::string> features;           // of the processor, all needed
  std::map<std::string, std::string> loaders;  // of the kernels, and their versions
  std::vector<ManifestEntry> entries;          // in the file's order, the manifest itself left out

  const ManifestEntry* find(std::string_view name) const;
  // Whether the file holds a program of several shapes (specialisations.h).
  bool has_specialisations() const { return find(kSpecialisationsEntry) != nullptr; }
  // Whether it runs in stages, which takes the importer and the compiler.
  bool has_stages() const { return find(kStagesEntry) != nullptr; }
};

std::string manifest_text(const Manifest& manifest);
// `file_bytes`: entries must lie within them, in order, on pages.
Result<Manifest> parse_manifest(std::string_view text, size_t file_bytes);

// Checks whether this process may run it, apart from its loaders; kUnavailable states what differs.
Status check_host(const Manifest& manifest);

}  // namespace collage
