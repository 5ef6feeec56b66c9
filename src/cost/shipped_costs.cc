#include "cost/shipped_costs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <mutex>

#include "backend/backend.h"
#include "base/files.h"
#include "base/hash.h"
#include "base/library_beside.h"
#include "base/log.h"
#include "cost/cost_keys.h"
#include "cost/machine.h"
#include "cost/row_values.h"

namespace collage {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

// The words of a line, one after the other.
std::string_view next_word(std::string_view& line) {
  const size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

template <typename Number>
Result<Number> number_of(std::string_view word, Number most) {
  Number value{};
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (code != std::errc() || end != word.data() + word.size() || !(value >= 0 && value <= most))
    return bad_model("'{}' is no number", word);
  return value;
}

constexpr double kMostMicroseconds = 1e12;

}  // namespace

Result<ShippedCosts::Head> ShippedCosts::head_of(std::string_view line) {
  const json value = parse_json(line);
  const JsonFields fields(value);
  Head head;
  if (TRY(fields.integer(shipped::kHead, 0, 1 << 20)) != shipped::kFormat)
    return bad_model("of another format than {}", shipped::kFormat);
  head.processor = TRY(fields.text("processor"));
  head.kind = TRY(fields.text("kind", ""));
  head.threads = static_cast<int>(TRY(fields.integer("threads", 1, 1 << 16)));
  for (const auto& [backend, version] : TRY(fields.object("versions"))->items())
    if (version.is_string()) head.versions[backend] = version.get<std::string>();
  head.speed = TRY(speed_from_json(*TRY(fields.object("speed"))));
  return head;
}

Result<ShippedCosts> ShippedCosts::read(std::string text) {
  ShippedCosts costs;
  costs.text_ = std::make_shared<const std::string>(std::move(text));
  std::string_view rest = *costs.text_;
  for (size_t number = 0; !rest.empty(); ++number) {
    const size_t end = rest.find('\n');
    if (end == std::string_view::npos) break;
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end + 1);
    if (number == 0) {
      costs.head_ = TRY(head_of(line));
      continue;
    }
    const std::string_view kind = next_word(line);
    if (kind == shipped::kEnd) {
      if (line != std::to_string(number)) break;
      return costs;
    }
    TRY(costs.read_line(kind, line).with_context("line " + std::to_string(number + 1)));
  }
  return bad_model("it is cut off");
}

Status ShippedCosts::read_line(std::string_view kind, std::string_view rest) {
  if (kind == shipped::kEstimate) return estimates_.add(parse_json(rest));
  if (kind == shipped::kVariant) return variants_.push_back(rest), Status();
  if (kind != shipped::kKernel && kind != shipped::kConversion)
    return bad_model("a line of an unknown kind");
  constexpr size_t kKey = shipped::kIdDigits + 2;  // with the state
  const std::string_view key = rest.substr(0, kKey);
  if (key.size() < kKey) return bad_model("a row without a key");
  rows_.emplace(key, rest.substr(std::min(kKey + 1, rest.size())));
  return {};
}

std::shared_ptr<const ShippedCosts> ShippedCosts::find(const fs::path& folder,
                                                       const std::string& processor, int threads,
                                                       const std::function<MachineSpeed()>& speed) {
  static std::mutex mutex;
  static std::map<std::tuple<fs::path, std::string, int>, std::shared_ptr<const ShippedCosts>>
      known;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = known.try_emplace({folder, processor, threads});
  if (!is_new || folder.empty()) return at->second;
  // By the rate of a thread, as a ratio.
  const auto distance = [&](const Head& head) {
    const double own = speed().float32 / threads, there = head.speed.float32 / head.threads;
    return own > 0 ? std::abs(std::log(own / there)) : 0;
  };
  std::error_code ec;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ec)) {
    if (entry.path().extension() != shipped::kExtension) continue;
    Result<std::string> text = read_file(entry.path());
    Result<ShippedCosts> costs = text ? read(std::move(text).value()) : text.status();
    if (!costs) {
      log::warn("{}: {}; it is left aside", entry.path().string(), costs.status().message());
      continue;
    }
    if (costs->head_.processor == processor && costs->head_.threads == threads) {
      costs->nearness_ = Nearness::kHere;
    } else if (costs->head_.kind == kind_here(threads)) {
      costs->nearness_ = Nearness::kKind;
      const double here = speed().float32;
      if (here > 0) costs->seconds_factor_ = costs->head_.speed.float32 / here;
    }
    if (at->second != nullptr &&
        (at->second->nearness_ > costs->nearness_ ||
         (at->second->nearness_ == costs->nearness_ &&
          (costs->is_of_here() || distance(costs->head_) >= distance(at->second->head_)))))
      continue;
    at->second = std::make_shared<const ShippedCosts>(std::move(costs).value());
  }
  return at->second;
}

std::string_view ShippedCosts::row(const std::string& id, CacheState cache) const {
  // What a kernel takes in another state is nearer than an estimate.
  for (const CacheState state :
       {cache, CacheState::kCold, CacheState::kStreaming, CacheState::kWarm})
    if (const auto found = rows_.find(shipped::key_of(id, state)); found != rows_.end())
      return found->second;
  return {};
}

std::optional<TargetCosts> ShippedCosts::kernel(const std::string& text, const Target& target,
                                                CacheState cache) const {
  if (nearness_ == Nearness::kOther) return std::nullopt;
  const auto version = head_.versions.find(target.kind);
  if (version == head_.versions.end() || version->second != library_version(target.kind))
    return std::nullopt;
  const std::string_view found = row(shipped::kernel_id(text, target.to_string()), cache);
  if (found.data() == nullptr) return std::nullopt;
  Result<TargetCosts> costs = decoded(found, target);
  if (costs) return std::move(costs).value();
  static std::once_flag told;
  std::call_once(told, [&] {
    log::warn("shipped costs of {}: {}; such rows are left aside", head_.processor,
              costs.status().message());
  });
  return std::nullopt;
}

Result<TargetCosts> ShippedCosts::decoded(std::string_view row, const Target& target) const {
  TargetCosts costs;
  costs.target = target.to_string();
  while (!row.empty()) {
    const std::string_view word = next_word(row);
    const size_t colon = std::min(word.find(':'), word.size());
    const auto number = TRY(number_of<size_t>(word.substr(0, colon), variants_.size()));
    if (number == variants_.size()) return bad_model("there is no variant {}", number);
    MeasuredVariant& one = costs.variants.emplace_back();
    one.variant = TRY(variant_from_json(parse_json(variants_[number])));
    one.elsewhere =
        seconds_factor_ * 1e-6 *
        TRY(number_of<double>(word.substr(std::min(colon + 1, word.size())), kMostMicroseconds));
  }
  if (costs.variants.empty()) costs.refusal = "refused where it was measured";
  return costs;
}

std::optional<double> ShippedCosts::conversion(const std::string& text, CacheState cache) const {
  if (nearness_ == Nearness::kOther) return std::nullopt;
  const std::string_view found = row(shipped::kernel_id(text, kConversions), cache);
  const Result<double> microseconds = number_of<double>(found, kMostMicroseconds);
  return microseconds ? std::optional(seconds_factor_ * 1e-6 * *microseconds) : std::nullopt;
}

fs::path shipped_costs_folder() {
  if (const char* given = std::getenv("COLLAGE_COSTS")) return given;
  const fs::path own = library_folder();
  std::error_code ec;
  for (const fs::path& folder :
       {own / "costs", own.parent_path() / "share/collage/costs",
        own.parent_path().parent_path() / "share/collage/costs"})  // lib/, lib/TRIPLET/
    if (!own.empty() && fs::is_directory(folder, ec)) return folder;
  return {};
}

}  // namespace collage
