#include "report/html_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/embedded.h"
#include "report/layout.h"

namespace collage {

using nlohmann::json;

namespace {

constexpr double kLetter = 6.6;          // width of one, about
constexpr size_t kLongestLabel = 30;     // letters
constexpr double kSmallestKernel = 164;  // holds "openvino · 0.0123 ms · 12%"

std::string short_op(const std::string& op) { return op.rfind("nn.", 0) == 0 ? op.substr(3) : op; }

// "conv2d + bias_add + relu", as far as it fits; equal neighbours are counted.
std::string label_of(const json& kernel) {
  std::vector<std::pair<std::string, size_t>> ops;
  for (const json& op : kernel["ops"]) {
    std::string name = short_op(op["op"].get<std::string>());
    if (!ops.empty() && ops.back().first == name) {
      ++ops.back().second;
    } else {
      ops.emplace_back(std::move(name), 1);
    }
  }
  std::string text;
  for (size_t i = 0; i < ops.size(); ++i) {
    std::string part = (i > 0 ? " + " : "") + ops[i].first;
    if (ops[i].second > 1) part += fmt::format("\u00d7{}", ops[i].second);
    if (i > 0 && text.size() + part.size() > kLongestLabel)
      return text + fmt::format(" +{}", ops.size() - i);
    text += part;
  }
  return text.empty() ? "view" : text;
}

std::string tensor_text(const json& tensor) {
  std::string text;
  for (const json& extent : tensor["shape"]) text += (text.empty() ? "" : "\u00d7") + extent.dump();
  return (text.empty() ? "scalar" : text) + " " + tensor["dtype"].get<std::string>();
}

double text_width(const std::string& text) {
  size_t letters = 0;
  for (char c : text) letters += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  return kLetter * static_cast<double>(std::min(letters, kLongestLabel + 6));
}

// One plan's graph: boxes are its kernels, then the nodes that no kernel computes, then results.
class Drawing {
 public:
  Drawing(const json& report, const json& kernels, const json& conversions)
      : kernels_(kernels), conversions_(conversions) {
    for (const json& node : report["nodes"]) nodes_[node["index"].get<size_t>()] = &node;
    for (size_t k = 0; k < kernels.size(); ++k) {
      inside_.emplace_back();
      for (const json& node : kernels[k]["nodes"]) {
        size_t index = node.get<size_t>();
        if (nodes_.count(index) == 0) continue;
        inside_[k].insert(index);
        owner_.try_emplace(index, k);
      }
    }
    for (const auto& [index, node] : nodes_)
      if (owner_.count(index) == 0) {
        owner_[index] = kernels.size() + loose_.size();
        loose_.push_back(index);
      }
    results_ = kernels.size() + loose_.size();
    add_edges();
    sort_boxes();
  }

  json draw(bool expanded) {
    std::vector<Inner> inners;
    std::vector<LayoutBox> boxes(order_.size());
    for (size_t k = 0; k < kernels_.size(); ++k) {
      double label = text_width(label_of(kernels_[k]));
      LayoutBox& box = boxes[position_[k]];
      box = {std::max(kSmallestKernel, label + 22), 40};
      if (!expanded) continue;
      inners.push_back(draw_inside(k));
      box.width = std::max(box.width, inners[k].size.width);
      box.height += inners[k].size.height;
    }
    for (size_t b = kernels_.size(); b < order_.size(); ++b)
      boxes[position_[b]] = {std::max(44.0, text_width(pill_text(b)) + 18), 20};
    std::vector<LayoutEdge> edges;
    for (const Edge& edge : edges_) edges.push_back({position_[edge.from], position_[edge.to]});
    LayoutSize size = lay_out(boxes, edges);

    json result = {{"w", std::lround(size.width)}, {"h", std::lround(size.height)}};
    result["boxes"] = json::array();
    result["pills"] = json::array();
    result["edges"] = json::array();
    for (size_t b = 0; b < order_.size(); ++b) {
      const LayoutBox& box = boxes[position_[b]];
      json place = {std::lround(box.x), std::lround(box.y), std::lround(box.width),
                    std::lround(box.height)};
      if (b >= kernels_.size()) {
        place.push_back(pill_text(b));
        place.push_back(b < results_ ? loose_[b - kernels_.size()] : result_nodes_[b - results_]);
        result["pills"].push_back(std::move(place));
        continue;
      }
      if (expanded) {
        place.push_back(inners[b].ops);
        place.push_back(inners[b].path);
      }
      result["boxes"].push_back(std::move(place));
    }
    for (size_t e = 0; e < edges_.size(); ++e) {
      const LayoutEdge& edge = edges[e];
      result["edges"].push_back({edges_[e].from, edges_[e].to, edges_[e].node, edges_[e].text,
                                 edges_[e].conversion, edge.path, std::lround(edge.label.x),
                                 std::lround(edge.label.y), std::lround(edge.middle.x),
                                 std::lround(edge.middle.y)});
    }
    return result;
  }

  json labels() const {
    json list = json::array();
    for (const json& kernel : kernels_) list.push_back(label_of(kernel));
    return list;
  }

 private:
  struct Edge {
    size_t from, to;  // boxes
    size_t node;      // whose value it is
    std::string text;
    int conversion;  // -1: none
  };
  struct Inner {
    LayoutSize size;
    json ops;  // [node, x, y, w, h] relative to the box
    std::string path;
  };

  std::string pill_text(size_t box) const {
    if (box >= results_) return "output";
    const json& node = *nodes_.at(loose_[box - kernels_.size()]);
    std::string op = node["op"].get<std::string>(), name = node["onnx_node"].get<std::string>();
    return op == "input" && !name.empty() && name.size() <= kLongestLabel ? name : short_op(op);
  }

  const json& node(size_t index) const { return *nodes_.at(index); }

  std::set<size_t> inputs_of(const std::set<size_t>& inside) const {
    std::set<size_t> inputs;
    for (size_t index : inside)
      for (const json& input : node(index)["inputs"])
        if (inside.count(input.get<size_t>()) == 0 && nodes_.count(input.get<size_t>()) != 0)
          inputs.insert(input.get<size_t>());
    return inputs;
  }

  // The call whose value a projection is a part of. A report from somewhere else may name nodes
  // that are not there, or projections of one another.
  size_t source_of(size_t index) const {
    for (size_t steps = 0; steps < nodes_.size(); ++steps) {
      if (node(index)["op"] != "item" || node(index)["inputs"].empty()) break;
      const size_t input = node(index)["inputs"][0].get<size_t>();
      if (nodes_.count(input) == 0) break;
      index = input;
    }
    return index;
  }

  int conversion_for(size_t index, const json& tensor) const {
    std::string wanted = tensor["dtype"].get<std::string>();
    if (tensor["layout"] != "plain") wanted += ":" + tensor["layout"].get<std::string>();
    if (tensor.contains("device")) wanted += "@" + tensor["device"].get<std::string>();
    for (size_t c = 0; c < conversions_.size(); ++c) {
      size_t from = conversions_[c]["node"].get<size_t>();
      if ((from == index || from == source_of(index)) && conversions_[c]["to"] == wanted)
        return static_cast<int>(c);
    }
    return -1;
  }

  std::string value_text(size_t index) const {
    const json& outputs = node(index)["outputs"];
    return outputs.empty() ? "" : tensor_text(outputs[0]);
  }

  void add_edges() {
    for (size_t k = 0; k < kernels_.size(); ++k) {
      size_t position = 0;
      for (size_t input : inputs_of(inside_[k])) {
        Edge edge{owner_.at(input), k, input, value_text(input), -1};
        const json& tensors = kernels_[k]["inputs"];
        if (position < tensors.size()) {
          edge.text = tensor_text(tensors[position]);
          if (tensors[position]["layout"] != "plain")
            edge.text += " " + tensors[position]["layout"].get<std::string>();
          if (tensors[position].contains("device"))
            edge.text += " on " + tensors[position]["device"].get<std::string>();
          edge.conversion = conversion_for(input, tensors[position]);
        }
        ++position;
        if (edge.from != edge.to) edges_.push_back(std::move(edge));
      }
    }
    for (size_t l = 0; l < loose_.size(); ++l) {
      std::set<size_t> inputs;
      for (const json& input : node(loose_[l])["inputs"])
        if (nodes_.count(input.get<size_t>()) != 0) inputs.insert(input.get<size_t>());
      for (size_t input : inputs)
        edges_.push_back({owner_.at(input), kernels_.size() + l, input, value_text(input), -1});
    }
    for (const auto& [index, node] : nodes_) {
      if (!node->value("is_result", false)) continue;
      int conversion = -1;
      if (!(*node)["outputs"].empty()) {
        json plain = (*node)["outputs"][0];
        plain["layout"] = "plain";
        conversion = conversion_for(index, plain);
      }
      edges_.push_back({owner_.at(index), results_ + result_nodes_.size(), index, value_text(index),
                        conversion});
      result_nodes_.push_back(index);
    }
  }

  // Producers first; an edge that would close a circle is left out.
  void sort_boxes() {
    size_t count = results_ + result_nodes_.size();
    std::vector<std::vector<size_t>> readers(count);
    std::vector<size_t> waiting(count);
    for (const Edge& edge : edges_) {
      readers[edge.from].push_back(edge.to);
      ++waiting[edge.to];
    }
    std::set<size_t> ready;
    for (size_t b = 0; b < count; ++b)
      if (waiting[b] == 0) ready.insert(b);
    position_.assign(count, count);
    auto take = [&](size_t box) {
      position_[box] = order_.size();
      order_.push_back(box);
      for (size_t reader : readers[box])
        if (--waiting[reader] == 0 && position_[reader] == count) ready.insert(reader);
    };
    while (order_.size() < count) {
      if (ready.empty())  // a circle: views that two kernels compute may look like one
        for (size_t b = 0; b < count && ready.empty(); ++b)
          if (position_[b] == count) ready.insert(b);
      size_t box = *ready.begin();
      ready.erase(ready.begin());
      take(box);
    }
    std::erase_if(edges_, [&](const Edge& e) { return position_[e.from] >= position_[e.to]; });
  }

  Inner draw_inside(size_t k) const {
    std::map<size_t, size_t> position;
    std::vector<LayoutBox> boxes;
    std::vector<LayoutEdge> edges;
    std::vector<size_t> shown;
    for (size_t index : inside_[k]) {
      position[index] = boxes.size();
      shown.push_back(index);
      boxes.push_back({text_width(short_op(node(index)["op"].get<std::string>())) + 16, 18});
    }
    for (size_t index : inside_[k]) {
      std::set<size_t> inputs;
      for (const json& input : node(index)["inputs"])
        if (position.count(input.get<size_t>()) != 0) inputs.insert(input.get<size_t>());
      for (size_t input : inputs) edges.push_back({position[input], position[index]});
    }
    LayoutOptions options;
    options.layer_gap = 12;
    options.box_gap = 8;
    options.aspect = boxes.size() > 30 ? 1.6 : 0;
    constexpr double kHeader = 34;
    Inner inner{lay_out(boxes, edges, options), json::array(), ""};
    for (size_t i = 0; i < boxes.size(); ++i)
      inner.ops.push_back({shown[i], std::lround(boxes[i].x), std::lround(boxes[i].y + kHeader),
                           std::lround(boxes[i].width), std::lround(boxes[i].height)});
    for (const LayoutEdge& edge : edges) inner.path += edge.path;
    return inner;
  }

  const json &kernels_, &conversions_;
  std::map<size_t, const json*> nodes_;
  std::vector<std::set<size_t>> inside_;  // of each kernel
  std::map<size_t, size_t> owner_;        // box of each node
  std::vector<size_t> loose_, result_nodes_;
  size_t results_ = 0;  // the first result's box
  std::vector<Edge> edges_;
  std::vector<size_t> order_, position_;  // boxes, producers first, and where each stands
};

json plan_drawing(const json& report, const json& plan, const std::string& name) {
  Drawing drawing(report, plan["kernels"], plan["conversions"]);
  return {{"name", name},
          {"labels", drawing.labels()},
          {"collapsed", drawing.draw(false)},
          {"expanded", drawing.draw(true)}};
}

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '{':
        result += "&#123;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

// JSON that can stand inside a script element: nothing in it ends the element or opens a comment.
std::string script_json(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace), result;
  result.reserve(text.size());
  for (char c : text) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

void fill_in(std::string& page, const std::string& mark, std::string_view content) {
  size_t at = page.find(mark);
  if (at != std::string::npos) page.replace(at, mark.size(), content);
}

}  // namespace

json plan_drawings(const json& report) {
  json drawings = json::array();
  drawings.push_back(plan_drawing(report, report, "chosen"));
  for (const json& plan : report["plans"])
    drawings.push_back(plan_drawing(report, plan, plan["name"].get<std::string>()));
  return drawings;
}

std::string html_page(const json& report) {
  std::string page(report_file("page.html"));
  std::string script;
  for (const char* part : {"base.js", "graph.js", "details.js", "lists.js", "main.js"})
    script += report_file(part);
  fill_in(page, "{{style}}", report_file("page.css"));
  fill_in(page, "{{script}}", script);
  // What comes from the model goes in last, and cannot hold a mark.
  fill_in(page, "{{title}}", escaped(report["model"].get<std::string>()));
  fill_in(page, "{{data}}", script_json({{"report", report}, {"drawings", plan_drawings(report)}}));
  return page;
}

}  // namespace collage
