#include "backend/memory/kernels/regions_kernel.h"

#include <cstring>

#include "backend/memory/kernels/loaders.h"
#include "runtime/saved_fields.h"

namespace collage::memory {
namespace {

using nlohmann::json;

constexpr char kRegions[] = "memory.pieces", kCopy[] = "memory.copy";

/// C: what does not lie there already is copied.
std::string copy_statement(size_t output, size_t to, size_t input, size_t from, size_t bytes) {
  return fmt::format("  copy(out[{}] + {}, in[{}] + {}, {});\n", output, to, input, from, bytes);
}

/// Copies what does not lie in its place.
class RegionsKernel : public Kernel {
 public:
  explicit RegionsKernel(std::vector<InPlace> places, std::vector<size_t> bytes)
      : places_(std::move(places)), bytes_(std::move(bytes)) {}

  Status run(const KernelArgs& args) override {
    for (size_t i = 0; i < places_.size(); ++i) {
      const InPlace& place = places_[i];
      const auto* from = static_cast<const uint8_t*>(args.inputs[place.input]);
      auto* to = static_cast<uint8_t*>(args.outputs[place.output]);
      if (place.joins()) {
        to += place.offset;
      } else {
        from += place.offset;
      }
      if (from != to) std::memcpy(to, from, bytes_[i]);
    }
    return {};
  }
  std::vector<InPlace> in_place() const override { return places_; }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }

  Result<SavedKernel> save() const override {
    json list = json::array();
    for (size_t i = 0; i < places_.size(); ++i)
      list.push_back({{"joins", places_[i].joins()},
                      {"input", places_[i].input},
                      {"output", places_[i].output},
                      {"offset", places_[i].offset},
                      {"bytes", bytes_[i]}});
    return SavedKernel{kRegions, json{{"places", std::move(list)}}.dump(), {}, {}};
  }

  Result<KernelSource> source() const override {
    KernelSource source;
    for (size_t i = 0; i < places_.size(); ++i) {
      const InPlace& place = places_[i];
      source.body += copy_statement(place.output, place.joins() ? place.offset : 0, place.input,
                                    place.joins() ? 0 : place.offset, bytes_[i]);
    }
    source.body += "  return 0;\n";
    return source;
  }

 private:
  std::vector<InPlace> places_;
  std::vector<size_t> bytes_;  // of each part
};

class CopyKernel : public Kernel {
 public:
  explicit CopyKernel(size_t bytes) : bytes_(bytes) {}
  Status run(const KernelArgs& args) override {
    std::memcpy(args.outputs[0], args.inputs[0], bytes_);
    return {};
  }
  Result<std::shared_ptr<Kernel>> twin() const override { return std::shared_ptr<Kernel>(); }
  Result<SavedKernel> save() const override {
    return SavedKernel{kCopy, json{{"bytes", bytes_}}.dump(), {}, {}};
  }
  Result<KernelSource> source() const override {
    return KernelSource{copy_statement(0, 0, 0, 0, bytes_) + "  return 0;\n", "", "", {}};
  }

 private:
  size_t bytes_;
};

Result<std::shared_ptr<Kernel>> load_regions(const SavedKernel& saved, int) {
  const json description = TRY(description_object(saved.description));
  std::vector<InPlace> places;
  std::vector<size_t> bytes;
  for (const json& entry : *TRY(JsonFields(description).array("places"))) {
    const JsonFields fields(entry);
    InPlace place;
    place.part = TRY(fields.flag("joins")) ? InPlace::Part::kInput : InPlace::Part::kOutput;
    place.input = static_cast<size_t>(TRY(fields.integer("input", 0, 1 << 20)));
    place.output = static_cast<size_t>(TRY(fields.integer("output", 0, 1 << 20)));
    place.offset = static_cast<size_t>(TRY(fields.integer("offset", 0, most_bytes())));
    places.push_back(place);
    bytes.push_back(static_cast<size_t>(TRY(fields.integer("bytes", 0, most_bytes()))));
    const size_t in_whole = place.offset + bytes.back();
    TRY(saved.buffers.input_holds(place.input, place.joins() ? bytes.back() : in_whole));
    TRY(saved.buffers.output_holds(place.output, place.joins() ? in_whole : bytes.back()));
  }
  return std::shared_ptr<Kernel>(make_regions_kernel(std::move(places), std::move(bytes)));
}

Result<std::shared_ptr<Kernel>> load_copy(const SavedKernel& saved, int) {
  const json description = TRY(description_object(saved.description));
  const auto bytes =
      static_cast<size_t>(TRY(JsonFields(description).integer("bytes", 0, most_bytes())));
  TRY(saved.buffers.input_holds(0, bytes));
  TRY(saved.buffers.output_holds(0, bytes));
  return std::shared_ptr<Kernel>(make_copy_kernel(bytes));
}

}  // namespace

std::unique_ptr<Kernel> make_regions_kernel(std::vector<InPlace> places,
                                            std::vector<size_t> bytes) {
  return std::make_unique<RegionsKernel>(std::move(places), std::move(bytes));
}

std::unique_ptr<Kernel> make_copy_kernel(size_t bytes) {
  return std::make_unique<CopyKernel>(bytes);
}

void register_loaders() {
  register_kernel_loader({kRegions, "1", load_regions});
  register_kernel_loader({kCopy, "1", load_copy});
}

}  // namespace collage::memory
