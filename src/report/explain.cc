#include "report/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/printable.h"
#include "search/cover.h"

namespace collage {

using nlohmann::json;

namespace {

const std::string& text_of(const json& value) { return value.get_ref<const std::string&>(); }

// Variants without the encodings that the kernel's tensors show anyway.
std::string algorithm(const json& variant) {
  const std::string& text = text_of(variant);
  return text.substr(0, text.find('('));
}

bool has_cost(const json& entry) {
  return entry.contains("cost_ms") && !entry["cost_ms"].is_null();
}
double cost_of(const json& entry) { return entry["cost_ms"]["median"].get<double>(); }

std::string cost_text(const json& entry) {
  if (entry.contains("reason")) return "cannot: " + printable(text_of(entry["reason"]), 200);
  if (!has_cost(entry)) return "not measured";
  const json& cost = entry["cost_ms"];
  return fmt::format("{:.4f} ms ({:.4f}-{:.4f}, n {})", cost_of(entry), cost["p10"].get<double>(),
                     cost["p90"].get<double>(), cost["count"].get<int>());
}

// Empty where it keeps NaN.
std::string nan_text(const json& kernel) {
  const bool loses = kernel.contains("loses_nan"), spreads = kernel.contains("spreads_nan");
  return loses && spreads ? "may lose or spread it"
         : loses          ? "may lose it"
         : spreads        ? "may spread it"
                          : "";
}

std::string margin_text(const json& a, const json& b) {
  if (!has_cost(a) || !has_cost(b)) return "";
  double noise = margin_in_noise(a["cost_ms"], b["cost_ms"]);
  return fmt::format("{:+.4f} ms", cost_of(b) - cost_of(a)) +
         (std::isfinite(noise) ? fmt::format(", {:.1f} noise", noise) : "");
}

// The cheapest alternative that can be used; null where there is none.
const json* runner_up(const json& kernel) {
  const json* best = nullptr;
  for (const json& other : kernel["alternatives"])
    if (has_cost(other) && (best == nullptr || cost_of(other) < cost_of(*best))) best = &other;
  return best;
}

std::string what_if_table(const json& report) {
  if (!report.contains("what_if")) return "";
  std::string text = "with one more flag, predicted:\n";
  for (const json& other : report["what_if"]) {
    if (other.contains("failure")) {
      text += fmt::format("  {:<40} {}\n", text_of(other["flag"]), text_of(other["failure"]));
      continue;
    }
    if (!other.contains("predicted_ms") || !other.contains("change_ms")) continue;
    double then = other["predicted_ms"].get<double>(), change = other["change_ms"].get<double>();
    text += fmt::format("  {:<40} {:.4f} ms  {:+.4f} ms  {:+.1f}%\n",
                        printable(text_of(other["flag"]), 200), then, change,
                        then > change ? 100 * change / (then - change) : 0);
  }
  return text;
}

// What such a proof is worth where rules did not look further.
std::string among_found(const json& search) {
  const size_t truncated = search.value("truncated", size_t{0});
  if (truncated == 0) return "";
  return fmt::format(" among the {} candidates found, {} of which limits cut short",
                     search["candidates"].get<size_t>(), truncated);
}

// How the plan stands to what the search found: the cheapest, or taken instead of it.
std::string standing(const json& report) {
  const json& covers = report["covers"];
  if (report["search"].value("light", false)) {
    const std::string origin = covers.empty() ? "" : covers[0].value("origin", "");
    if (origin == kFirstAnswer) return "a first answer: nothing was measured beforehand";
    if (origin == kKnownPlan) return "as chosen before";
    return "one choice: nothing was searched, --effort max does";
  }
  if (!covers.empty() && covers[0]["chosen"] == false)
    return fmt::format("faster when timed than {}, the cheapest by these costs at {:.4f} ms",
                       text_of(covers[0]["name"]), covers[0]["predicted_ms"].get<double>());
  const std::string bound = report["search"]["exact"] == true
                                ? "proven cheapest by these costs"
                                : fmt::format("nothing can cost less than {:.4f} ms",
                                              report["lower_bound_ms"].get<double>());
  return bound + among_found(report["search"]);
}

double sum_predicted(const json& parts) {
  double sum = 0;
  for (const json& part : parts) sum += part["predicted_ms"].get<double>();
  return sum;
}

std::set<size_t> nodes_of(const json& holder) { return holder["nodes"].get<std::set<size_t>>(); }

std::string shapes(const json& tensors) {
  std::string text;
  for (const json& tensor : tensors) {
    text += (text.empty() ? "" : ", ") + text_of(tensor["dtype"]) + " " + tensor["shape"].dump();
    if (text_of(tensor["layout"]) != "plain") text += " " + text_of(tensor["layout"]);
    if (tensor.contains("device")) text += " on " + text_of(tensor["device"]);
  }
  return text;
}

// Conversions of what the kernel reads (made for it, or shared) and of what it gives.
std::string conversions_of(const json& report, const json& kernel) {
  std::set<size_t> inside = nodes_of(kernel), inputs;
  for (const json& node : report["nodes"])
    if (inside.count(node["index"].get<size_t>()) != 0)
      for (const json& input : node["inputs"])
        if (inside.count(input.get<size_t>()) == 0) inputs.insert(input.get<size_t>());
  std::string text;
  for (const json& c : report["conversions"]) {
    size_t node = c["node"].get<size_t>();
    const char* role = inputs.count(node) ? "before" : inside.count(node) ? "after" : nullptr;
    if (role != nullptr)
      text += fmt::format("  {:<7} {}  {} {} -> {}  {:.4f} ms\n", role, text_of(c["name"]),
                          c["shape"].dump(), text_of(c["from"]), text_of(c["to"]),
                          c["predicted_ms"].get<double>());
  }
  return text;
}

const json* find_node(const json& report, const std::string& name) {
  for (const json& node : report["nodes"])
    if (text_of(node["onnx_node"]) == name && node["op"] != "input") return &node;
  for (const json& node : report["nodes"])
    if (node["index"].dump() == name) return &node;
  return nullptr;
}

const json* kernel_holding(const json& report, size_t index) {
  for (const json& kernel : report["kernels"])
    for (const json& node : kernel["nodes"])
      if (node.get<size_t>() == index) return &kernel;
  return nullptr;
}

// "nn.conv2d+nn.relu" of nodes by index.
std::string label_of(const json& report, const std::set<size_t>& nodes) {
  std::string text;
  size_t count = 0;
  for (const json& node : report["nodes"])
    if (nodes.count(node["index"].get<size_t>()) != 0 && ++count <= 6)
      text += (text.empty() ? "" : "+") + text_of(node["op"]);
  return count > 6 ? fmt::format("{}+... ({} nodes)", text, count) : text;
}

}  // namespace

double margin_in_noise(const json& a, const json& b) {
  constexpr double kDeviations = 2.563;  // between the 10th and 90th percentiles of a normal one
  auto deviation = [](const json& cost) {
    return (cost["p90"].get<double>() - cost["p10"].get<double>()) / kDeviations;
  };
  double noise = std::hypot(deviation(a), deviation(b));
  double difference = b["median"].get<double>() - a["median"].get<double>();
  if (noise > 0) return difference / noise;
  return difference == 0 ? 0 : std::copysign(std::numeric_limits<double>::infinity(), difference);
}

std::string explain_plan(const json& report) {
  const json &kernels = report["kernels"], &conversions = report["conversions"];
  double predicted = report["predicted_ms"].get<double>(), in_kernels = sum_predicted(kernels),
         converting = sum_predicted(conversions), overlap = report.value("overlap_ms", 0.0),
         rest = report["correction_ms"].get<double>() + overlap;
  std::string text =
      predicted == 0
          ? fmt::format("{}: {} kernels and {} conversions, not predicted",
                        printable(text_of(report["model"])), kernels.size(), conversions.size())
          : fmt::format("{}: predicted {:.4f} ms = {} kernels {:.4f} ms + {} conversions {:.4f} ms",
                        printable(text_of(report["model"])), predicted, kernels.size(), in_kernels,
                        conversions.size(), converting);
  if (overlap > 0) text += fmt::format(" - {:.4f} ms side by side", overlap);
  if (std::abs(rest) > 1e-9) text += fmt::format(" {:+.4f} ms correction", rest);
  text += "; " + standing(report) + "\n";
  if (const auto in_situ = report.find("in_situ"); in_situ != report.end())
    text += fmt::format("in situ its kernels take {:.4f} ms, {:.3f} times their isolated costs\n",
                        (*in_situ)["ms"].get<double>(), (*in_situ)["ratio"].get<double>());
  text +=
      fmt::format("{:>10} {:>6}  {}\n", "ms", "share", "kernel: variant | runner-up, its margin");
  size_t not_strict = 0;
  std::vector<const json*> order;
  for (const json& kernel : kernels) order.push_back(&kernel);
  std::stable_sort(order.begin(), order.end(), [](const json* a, const json* b) {
    return (*a)["predicted_ms"].get<double>() > (*b)["predicted_ms"].get<double>();
  });
  for (const json* kernel : order) {
    double part = (*kernel)["predicted_ms"].get<double>();
    std::string rival = "none";
    if (const json* other = runner_up(*kernel))
      rival = text_of((*other)["target"]) + " " + algorithm((*other)["variant"]) + " " +
              margin_text(*kernel, *other);
    std::string nan = nan_text(*kernel);
    not_strict += !nan.empty();
    if (!nan.empty()) nan = ", NaN: " + nan;
    std::string variant = algorithm((*kernel)["variant"]);
    const std::string target = text_of((*kernel)["target"]), option = " -device=";
    if (const size_t at = target.find(option); at != std::string::npos)
      variant +=
          " on " + target.substr(at + option.size(), target.find(' ', at + 1) - at - option.size());
    text += fmt::format("{:>10.4f} {:>5.1f}%  {}: {} | {}{}\n", part,
                        predicted > 0 ? 100 * part / predicted : 0, text_of((*kernel)["name"]),
                        variant, rival, nan);
  }
  for (const json& c : conversions)
    text += fmt::format("{:>10.4f} {:>5.1f}%  {}: {} -> {}\n", c["predicted_ms"].get<double>(),
                        predicted > 0 ? 100 * c["predicted_ms"].get<double>() / predicted : 0,
                        text_of(c["name"]), text_of(c["from"]), text_of(c["to"]));
  for (const json& plan : report["plans"])
    text += fmt::format("{} alone: predicted {:.4f} ms in {} kernels, {} conversions\n",
                        text_of(plan["name"]), plan["predicted_ms"].get<double>(),
                        plan["kernels"].size(), plan["conversions"].size());
  if (not_strict > 0)
    text += fmt::format("{} kernels may lose or spread NaN; --accuracy strict leaves such out\n",
                        not_strict);
  text += what_if_table(report);
  if (!report["rejections"].empty())
    text += fmt::format(
        "{} candidates were refused by their backends: explain a kernel, or a node and a target\n",
        report["rejections"].size());
  return text;
}

Result<const json*> find_kernel(const json& report, const std::string& name) {
  for (const json& kernel : report["kernels"])
    if (text_of(kernel["name"]) == name) return &kernel;
  if (const json* node = find_node(report, name))
    if (const json* kernel = kernel_holding(report, (*node)["index"].get<size_t>())) return kernel;
  std::string close;
  for (const json& kernel : report["kernels"])
    if (close.size() < 200 && text_of(kernel["name"]).find(name) != std::string::npos)
      close += (close.empty() ? "" : ", ") + text_of(kernel["name"]);
  return usage_error("no kernel is called '{}' or holds a node of that name{}", printable(name),
                     close.empty() ? "" : "; there are " + close);
}

std::string explain_kernel(const json& report, const json& kernel) {
  std::string text = fmt::format("{} on {}\n", text_of(kernel["name"]), text_of(kernel["target"]));
  text += "  variant  " + text_of(kernel["variant"]) + "\n";
  if (const std::string nan = nan_text(kernel); !nan.empty()) text += "  NaN      " + nan + "\n";
  for (const json& op : kernel["ops"])
    text += fmt::format("  node     {} {} {}\n", op["index"].get<size_t>(), text_of(op["op"]),
                        printable(text_of(op["onnx_node"]), 100));
  text +=
      "  takes    " + shapes(kernel["inputs"]) + "\n  gives    " + shapes(kernel["outputs"]) + "\n";
  text += "  cost     " + cost_text(kernel) + "\n";
  double part = kernel["predicted_ms"].get<double>();
  text += fmt::format("  part     {:.4f} ms of the prediction, {:.1f}%\n", part,
                      100 * part / std::max(1e-12, report["predicted_ms"].get<double>()));
  if (std::string list = conversions_of(report, kernel); !list.empty())
    text += "conversions beside it:\n" + list;

  std::vector<const json*> rivals, refused;
  for (const json& other : kernel["alternatives"])
    (has_cost(other) ? rivals : refused).push_back(&other);
  std::stable_sort(rivals.begin(), rivals.end(),
                   [](const json* a, const json* b) { return cost_of(*a) < cost_of(*b); });
  text += rivals.empty() ? "no other way to run the same nodes\n" : "the same nodes otherwise:\n";
  for (const json* other : rivals)
    text += fmt::format("  {:<10} {}  {}  {}\n", text_of((*other)["target"]), cost_text(*other),
                        margin_text(kernel, *other), text_of((*other)["variant"]));
  for (const json* other : refused)
    text += fmt::format("  {:<10} {}  {}\n", text_of((*other)["target"]), cost_text(*other),
                        text_of((*other)["variant"]));

  const std::set<size_t> inside = nodes_of(kernel);
  std::vector<std::pair<const json*, std::set<size_t>>> overlapping;
  for (const json& candidate : report["considered"]) {
    std::set<size_t> nodes = nodes_of(candidate);
    if (nodes != inside &&
        std::any_of(nodes.begin(), nodes.end(), [&](size_t n) { return inside.count(n) != 0; }))
      overlapping.emplace_back(&candidate, std::move(nodes));
  }
  std::stable_sort(overlapping.begin(), overlapping.end(),
                   [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (!overlapping.empty()) text += "kernels of another extent that hold its nodes:\n";
  constexpr size_t kMost = 24;
  for (size_t i = 0; i < std::min(kMost, overlapping.size()); ++i)
    text += fmt::format("  {:<10} {}  {}\n", text_of((*overlapping[i].first)["target"]),
                        label_of(report, overlapping[i].second), cost_text(*overlapping[i].first));
  if (overlapping.size() > kMost)
    text += fmt::format("  and {} more\n", overlapping.size() - kMost);
  return text + what_if_table(report);
}

Result<std::string> explain_why_not(const json& report, const std::string& target,
                                    const std::string& name) {
  const json* node = find_node(report, name);
  if (node == nullptr) return usage_error("no node is called '{}'", printable(name));
  const json* kernel = kernel_holding(report, (*node)["index"].get<size_t>());
  std::string what = fmt::format("{} ({})", printable(name), text_of((*node)["op"]));
  if (kernel == nullptr) return what + " needs no kernel: the host passes its buffers along\n";
  auto same = [&](const json& other) {
    const std::string& full = text_of(other);
    return full == target || full.substr(0, full.find(' ')) == target;
  };
  if (same((*kernel)["target"]))
    return fmt::format("{} does run on {}: kernel {}\n", what, target, text_of((*kernel)["name"]));
  std::string used;
  for (const json& other : report["targets"]) used += (used.empty() ? "" : ", ") + text_of(other);
  if (std::none_of(report["targets"].begin(), report["targets"].end(), same))
    return usage_error("{} is not among the targets in use: {}", target, used);

  std::string text = fmt::format("{} runs in {} on {}, {}\n", what, text_of((*kernel)["name"]),
                                 text_of((*kernel)["target"]), cost_text(*kernel));
  std::vector<const json*> possible, refused;
  for (const json& candidate : report["considered"])
    if (same(candidate["target"]) && nodes_of(candidate).count((*node)["index"].get<size_t>()) != 0)
      (candidate.contains("reason") ? refused : possible).push_back(&candidate);
  if (possible.empty() && refused.empty())
    return text +
           fmt::format(
               "no rule of {} proposes a kernel with this {}: it takes no such operator here, "
               "or a flag (--exclude, --pin) forbids it\n",
               target, text_of((*node)["op"]));
  for (const json* candidate : refused)
    text += fmt::format("  {} refused {}: {}\n", target, label_of(report, nodes_of(*candidate)),
                        printable(text_of((*candidate)["reason"]), 300));
  for (const json* candidate : possible) {
    std::set<size_t> nodes = nodes_of(*candidate);
    text += fmt::format("  {} could run {}: {}", target, label_of(report, nodes),
                        cost_text(*candidate));
    // What the chosen kernels that lie within it cost, where they make up the same nodes.
    double chosen = 0;
    std::set<size_t> covered;
    for (const json& other : report["kernels"]) {
      std::set<size_t> theirs = nodes_of(other);
      if (!std::includes(nodes.begin(), nodes.end(), theirs.begin(), theirs.end())) continue;
      covered.insert(theirs.begin(), theirs.end());
      chosen += other["predicted_ms"].get<double>();
    }
    if (covered == nodes) text += fmt::format("; the plan takes {:.4f} ms for these nodes", chosen);
    text += "\n";
  }
  return text + what_if_table(report);
}

}  // namespace collage
