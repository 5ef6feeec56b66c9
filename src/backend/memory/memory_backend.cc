#include "backend/memory/memory_backend.h"

#include <algorithm>

#include "backend/fingerprint.h"
#include "backend/memory/kernels/loaders.h"
#include "backend/memory/kernels/regions_kernel.h"
#include "backend/memory/regions.h"
#include "backend/memory/regions_rule.h"
#include "ir/visitor.h"

namespace collage {
namespace memory {
namespace {

struct Parsed {
  Regions regions;
  std::vector<size_t> tensors;  // of each region: which parameter or result it is
};

Result<Parsed> parse(const Function& function) {
  const Function flat = TRY(inline_calls(function));
  const auto* call = as<CallNode>(flat->body);
  if (call == nullptr) return unsupported("memory: no call");
  Parsed parsed{TRY(read_regions(*call)), {}};
  const auto* fields = as<TupleNode>(call->args[0]);
  for (size_t region = 0; region < parsed.regions.regions.size(); ++region) {
    if (parsed.regions.part == InPlace::Part::kOutput) {
      parsed.tensors.push_back(region);
      continue;
    }
    const auto& params = flat->params;
    const auto param = fields == nullptr
                           ? params.end()
                           : std::find(params.begin(), params.end(), fields->fields[region]);
    const auto index = static_cast<size_t>(param - params.begin());
    if (param == params.end() || std::count(parsed.tensors.begin(), parsed.tensors.end(), index))
      return unsupported("memory: a field that is constant or there twice");
    parsed.tensors.push_back(index);
  }
  return parsed;
}

Variant variant_of(const Function& function, const Layout& layout) {
  Variant variant = Variant::plain("in place", function);
  variant.work.in_place = true;
  for (auto* encodings : {&variant.inputs, &variant.outputs})
    for (Encoding& encoding : *encodings) encoding.layout = layout;
  return variant;
}

/// In which the regions are runs of bytes.
std::vector<Layout> layouts_of(const Regions& regions) {
  const auto rank = static_cast<int64_t>(regions.whole.shape.size());
  std::vector<Layout> list{Layout()};
  if (rank >= 3)
    list.insert(list.end(), {Layout::channels_blocked(rank, 16), Layout::channels_blocked(rank, 8),
                             Layout::channels_last(rank)});
  std::erase_if(list, [&](const Layout& layout) { return !runs_in(regions, layout).ok(); });
  return list;
}

class MemoryBackend : public Backend {
 public:
  MemoryBackend()
      : Backend("memory", [] {
          return BackendTraits{.version = source_fingerprint("memory"),
                               .priority = 5,
                               .kernels = {{.name = "in place",
                                            .computes = "joins and cuts of runs of bytes",
                                            .tile = "layout",
                                            .work = {.in_place = true}}}};
        }) {}
  PartitionRulePtr partition_rule(const Target&) const override { return make_regions_rule(); }

  Result<std::vector<Variant>> variants(const Function& function, const Target&,
                                        const CompileOptions&) const override {
    const Parsed parsed = TRY(parse(function));
    std::vector<Variant> list;
    for (const Layout& layout : layouts_of(parsed.regions))
      list.push_back(variant_of(function, layout));
    if (list.empty()) return unsupported("memory: elements that lie apart");
    return list;
  }

  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target&, const CompileOptions&) const override {
    const Parsed parsed = TRY(parse(function));
    for (const Layout& layout : layouts_of(parsed.regions)) {
      if (!(variant == variant_of(function, layout))) continue;
      std::vector<InPlace> places;
      std::vector<size_t> bytes;
      const std::vector<Run> runs = TRY(runs_in(parsed.regions, layout));
      for (size_t i = 0; i < runs.size(); ++i) {
        const bool joins = parsed.regions.part == InPlace::Part::kInput;
        places.push_back({parsed.regions.part, joins ? parsed.tensors[i] : 0,
                          joins ? 0 : parsed.tensors[i], runs[i].offset});
        bytes.push_back(runs[i].bytes);
      }
      return make_regions_kernel(std::move(places), std::move(bytes));
    }
    return unsupported("memory: no variant {}", variant.to_string());
  }
};

}  // namespace
}  // namespace memory

std::unique_ptr<Backend> make_memory_backend() {
  memory::register_loaders();
  return std::make_unique<memory::MemoryBackend>();
}

}  // namespace collage
