#include "report/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace collage {

namespace {

constexpr size_t kLongEdge = 10;     // layers; longer edges run through the gutter
constexpr int kOrderSweeps = 8;      // down and up
constexpr int kPositionSweeps = 10;  // likewise
constexpr size_t kMostColumns = 16;
constexpr double kLane = 7, kCorner = 6, kMargin = 16;
constexpr size_t kMostLanes = 14;  // of a gutter; further edges share them

// A box, or a bend of an edge on its way through a layer.
struct Item {
  double width = 0, x = 0;  // of its middle
  size_t layer = 0;
  std::vector<size_t> above, below;
};

class Layered {
 public:
  Layered(std::vector<LayoutBox>& boxes, std::vector<LayoutEdge>& edges,
          const LayoutOptions& options)
      : boxes_(boxes), edges_(edges), options_(options), bends_(edges.size()) {}

  LayoutSize run() {
    if (boxes_.empty()) return {2 * kMargin, 2 * kMargin};
    assign_layers();
    add_bends();
    order();
    position();
    fold();
    return route();
  }

 private:
  void assign_layers() {
    std::vector<std::vector<size_t>> readers(boxes_.size());
    std::vector<size_t> inputs(boxes_.size());
    items_.resize(boxes_.size());
    for (const LayoutEdge& edge : edges_) {
      readers[edge.from].push_back(edge.to);
      ++inputs[edge.to];
    }
    for (size_t b = 0; b < boxes_.size(); ++b) {
      items_[b].width = boxes_[b].width;
      for (size_t reader : readers[b])
        items_[reader].layer = std::max(items_[reader].layer, items_[b].layer + 1);
    }
    // What nothing feeds stands right above its first reader.
    for (size_t b = 0; b < boxes_.size(); ++b) {
      if (inputs[b] > 0 || readers[b].empty()) continue;
      size_t first = std::numeric_limits<size_t>::max();
      for (size_t reader : readers[b]) first = std::min(first, items_[reader].layer);
      items_[b].layer = first - 1;
    }
  }

  bool is_short(const LayoutEdge& edge) const {
    return items_[edge.to].layer - items_[edge.from].layer <= kLongEdge;
  }

  void add_bends() {
    for (size_t e = 0; e < edges_.size(); ++e) {
      const LayoutEdge edge = edges_[e];
      if (!is_short(edge)) continue;
      size_t previous = edge.from;
      auto link = [&](size_t next) {
        items_[previous].below.push_back(next);
        items_[next].above.push_back(previous);
        previous = next;
      };
      for (size_t layer = items_[edge.from].layer + 1; layer < items_[edge.to].layer; ++layer) {
        Item bend;
        bend.width = 6;
        bend.layer = layer;
        bends_[e].push_back(items_.size());
        items_.push_back(std::move(bend));
        link(items_.size() - 1);
      }
      link(edge.to);
    }
    for (size_t i = 0; i < items_.size(); ++i) {
      if (layers_.size() <= items_[i].layer) layers_.resize(items_[i].layer + 1);
      layers_[items_[i].layer].push_back(i);
    }
  }

  // Sorts each layer by the mean rank of its neighbours in the layer before (after, upwards).
  void order() {
    std::vector<double> rank(items_.size());
    auto number = [&](const std::vector<size_t>& layer) {
      for (size_t k = 0; k < layer.size(); ++k)
        rank[layer[k]] = (static_cast<double>(k) + 0.5) / static_cast<double>(layer.size());
    };
    for (const auto& layer : layers_) number(layer);
    auto sort_by = [&](std::vector<size_t>& layer, std::vector<size_t> Item::*neighbours) {
      std::vector<std::pair<double, size_t>> keys;
      for (size_t item : layer) {
        const std::vector<size_t>& near = items_[item].*neighbours;
        double sum = 0;
        for (size_t other : near) sum += rank[other];
        keys.emplace_back(near.empty() ? rank[item] : sum / static_cast<double>(near.size()), item);
      }
      std::stable_sort(keys.begin(), keys.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (size_t k = 0; k < layer.size(); ++k) layer[k] = keys[k].second;
      number(layer);
    };
    for (int sweep = 0; sweep < kOrderSweeps; ++sweep) {
      for (size_t l = 1; l < layers_.size(); ++l) sort_by(layers_[l], &Item::above);
      for (size_t l = layers_.size() - 1; l-- > 0;) sort_by(layers_[l], &Item::below);
    }
    for (size_t l = 1; l < layers_.size(); ++l) sort_by(layers_[l], &Item::above);
  }

  double distance(size_t left, size_t right) const {
    return (items_[left].width + items_[right].width) / 2 + options_.box_gap;
  }

  // Least squares towards the targets, keeping the order and the distances: items that would
  // overlap are pooled into blocks that move as one.
  void place(const std::vector<size_t>& layer, const std::vector<double>& targets,
             const std::vector<double>& weights) {
    struct Block {
      double sum, weight;
      size_t size;
    };
    std::vector<Block> blocks;
    std::vector<double> shift(layer.size());  // of an item behind the layer's first
    for (size_t k = 0; k < layer.size(); ++k) {
      if (k > 0) shift[k] = shift[k - 1] + distance(layer[k - 1], layer[k]);
      blocks.push_back({weights[k] * (targets[k] - shift[k]), weights[k], 1});
      while (blocks.size() > 1) {
        Block &last = blocks.back(), &before = blocks[blocks.size() - 2];
        if (before.sum / before.weight <= last.sum / last.weight) break;
        before = {before.sum + last.sum, before.weight + last.weight, before.size + last.size};
        blocks.pop_back();
      }
    }
    size_t k = 0;
    for (const Block& block : blocks)
      for (size_t end = k + block.size; k < end; ++k)
        items_[layer[k]].x = block.sum / block.weight + shift[k];
  }

  void position() {
    for (const auto& layer : layers_)
      place(layer, std::vector<double>(layer.size(), 0), std::vector<double>(layer.size(), 1));
    auto follow = [&](const std::vector<size_t>& layer, bool down, bool both) {
      std::vector<double> targets, weights;
      for (size_t item : layer) {
        double sum = 0, weight = 0;
        auto add = [&](const std::vector<size_t>& near) {
          for (size_t other : near) {
            // Bends in a row make a straight line before anything else.
            double w = item >= boxes_.size() && other >= boxes_.size() ? 8 : 1;
            sum += w * items_[other].x;
            weight += w;
          }
        };
        if (down || both) add(items_[item].above);
        if (!down || both) add(items_[item].below);
        targets.push_back(weight > 0 ? sum / weight : items_[item].x);
        weights.push_back(std::max(weight, 0.1));
      }
      place(layer, targets, weights);
    };
    for (int sweep = 0; sweep < kPositionSweeps; ++sweep) {
      for (size_t l = 1; l < layers_.size(); ++l) follow(layers_[l], true, false);
      for (size_t l = layers_.size() - 1; l-- > 0;) follow(layers_[l], false, false);
    }
    for (int sweep = 0; sweep < 2; ++sweep)
      for (const auto& layer : layers_) follow(layer, true, true);
  }

  struct Column {
    size_t begin = 0, end = 0;     // layers
    double left = 0, right = 0;    // extent of its items, before it is moved
    double height = 0, shift = 0;  // what is added to x
  };

  double layer_height(size_t layer) const {
    double height = 0;
    for (size_t item : layers_[layer])
      if (item < boxes_.size()) height = std::max(height, boxes_[item].height);
    return height + options_.layer_gap;
  }

  std::vector<Column> split(size_t count, const std::vector<double>& heights,
                            const std::vector<size_t>& passing) const {
    double total = std::accumulate(heights.begin(), heights.end(), 0.0);
    std::vector<Column> columns;
    double done = 0;
    for (size_t begin = 0; begin < layers_.size();) {
      double share =
          (total - done) / static_cast<double>(count - std::min(count - 1, columns.size()));
      size_t end = begin, best = layers_.size();
      double height = 0, least = std::numeric_limits<double>::max();
      bool is_last = columns.size() + 1 >= count;
      while (end < layers_.size() && !is_last) {
        height += heights[end++];
        // The boundary behind layer end - 1: near the share, and where few edges pass.
        double miss = std::abs(height / share - 1) + 0.05 * static_cast<double>(passing[end - 1]);
        if (miss < least) {
          least = miss;
          best = end;
        }
        if (height > 1.3 * share) break;
      }
      if (is_last) best = layers_.size();
      Column column;
      column.begin = begin;
      column.end = best;
      column.left = std::numeric_limits<double>::max();
      column.right = std::numeric_limits<double>::lowest();
      for (size_t l = begin; l < best; ++l) {
        column.height += heights[l];
        for (size_t item : layers_[l]) {
          column.left = std::min(column.left, items_[item].x - items_[item].width / 2);
          column.right = std::max(column.right, items_[item].x + items_[item].width / 2);
        }
      }
      done += column.height;
      columns.push_back(column);
      begin = best;
    }
    return columns;
  }

  void fold() {
    std::vector<double> heights;
    for (size_t l = 0; l < layers_.size(); ++l) heights.push_back(layer_height(l));
    std::vector<size_t> passing(layers_.size());  // edges behind each layer
    for (const LayoutEdge& edge : edges_)
      for (size_t l = items_[edge.from].layer; l < items_[edge.to].layer; ++l) ++passing[l];
    double best = std::numeric_limits<double>::max();
    for (size_t count = 1; count <= (options_.aspect > 0 ? kMostColumns : 1); ++count) {
      std::vector<Column> columns = split(count, heights, passing);
      double width = 0, height = 0;
      for (const Column& column : columns) {
        width += column.right - column.left + 4 * kLane + 2 * options_.box_gap;
        height = std::max(height, column.height);
      }
      double miss = options_.aspect > 0 ? std::abs(std::log(width / height / options_.aspect)) : 0;
      if (miss >= best) continue;
      best = miss;
      columns_ = std::move(columns);
    }
    column_of_.resize(layers_.size());
    tops_.resize(layers_.size());
    for (size_t c = 0; c < columns_.size(); ++c) {
      double y = 0;
      for (size_t l = columns_[c].begin; l < columns_[c].end; ++l) {
        column_of_[l] = c;
        tops_[l] = y;
        y += heights[l];
      }
    }
  }

  bool in_gutter(const LayoutEdge& edge) const {
    return !is_short(edge) ||
           column_of_[items_[edge.from].layer] != column_of_[items_[edge.to].layer];
  }

  // Lanes of a gutter, one a producer.
  size_t lane(size_t gutter, size_t producer) {
    auto& lanes = lanes_[gutter];
    return lanes.try_emplace(producer, lanes.size() % kMostLanes).first->second;
  }

  LayoutSize route() {
    // Gutter c is left of column c; the one behind the last column has its number.
    auto gutters_of = [&](const LayoutEdge& edge) {
      size_t from = column_of_[items_[edge.from].layer], to = column_of_[items_[edge.to].layer];
      return std::make_pair(from + 1, from == to ? from + 1 : to);
    };
    bool over_the_top = false;
    for (const LayoutEdge& edge : edges_) {
      if (!in_gutter(edge)) continue;
      auto [first, second] = gutters_of(edge);
      lane(first, edge.from);
      if (second != first) {
        lane(second, edge.from);
        lane(columns_.size() + 1, edge.from);  // the lanes above all columns
        over_the_top = true;
      }
    }
    auto gutter_width = [&](size_t gutter) {
      size_t used = std::min(kMostLanes, lanes_[gutter].size());
      return options_.box_gap + kLane * static_cast<double>(used == 0 ? 0 : used + 1);
    };
    double top =
        kMargin + (over_the_top
                       ? kLane * static_cast<double>(
                                     std::min(kMostLanes, lanes_[columns_.size() + 1].size()) + 1)
                       : 0);
    double x = kMargin, height = 0;
    std::vector<double> gutter_left(columns_.size() + 1);
    for (size_t c = 0; c < columns_.size(); ++c) {
      gutter_left[c] = x;
      x += c > 0 ? gutter_width(c) : 0;
      columns_[c].shift = x - columns_[c].left;
      x += columns_[c].right - columns_[c].left;
      height = std::max(height, columns_[c].height);
    }
    gutter_left[columns_.size()] = x;
    x += gutter_width(columns_.size());
    for (double& y : tops_) y += top;
    for (size_t b = 0; b < boxes_.size(); ++b) {
      size_t layer = items_[b].layer;
      double room = layer_height(layer) - options_.layer_gap;
      boxes_[b].x = items_[b].x + columns_[column_of_[layer]].shift - boxes_[b].width / 2;
      boxes_[b].y = tops_[layer] + (room - boxes_[b].height) / 2;
    }
    std::vector<std::vector<size_t>> inputs(boxes_.size());
    for (size_t e = 0; e < edges_.size(); ++e) inputs[edges_[e].to].push_back(e);
    for (std::vector<size_t>& list : inputs) {
      std::stable_sort(list.begin(), list.end(),
                       [&](size_t a, size_t b) { return approach(a) < approach(b); });
      for (size_t k = 0; k < list.size(); ++k) {
        const LayoutBox& box = boxes_[edges_[list[k]].to];
        double port =
            box.x + box.width * static_cast<double>(k + 1) / static_cast<double>(list.size() + 1);
        LayoutEdge& edge = edges_[list[k]];
        // Descriptions of neighbours stand on rows of their own.
        edge.label = {port + 4, box.y - 5 - 9 * static_cast<double>(k % 3)};
        if (in_gutter(edge)) {
          auto [first, second] = gutters_of(edge);
          auto lane_x = [&](size_t gutter) {
            return gutter_left[gutter] + options_.box_gap / 2 +
                   kLane * static_cast<double>(1 + lane(gutter, edge.from));
          };
          std::vector<double> xs = {lane_x(first)};
          double lane_y =
              kMargin + kLane * static_cast<double>(lanes_[columns_.size() + 1].count(edge.from)
                                                        ? lane(columns_.size() + 1, edge.from)
                                                        : 0);
          if (second != first) xs.push_back(lane_x(second));
          route_through_gutters(edge, port, xs, lane_y);
        } else {
          route_straight(list[k], port);
        }
      }
    }
    return {x + kMargin, top + height + kMargin};
  }

  // Where an edge comes from, as its consumer sees it.
  double approach(size_t e) const {
    if (in_gutter(edges_[e])) return std::numeric_limits<double>::max();
    return items_[bends_[e].empty() ? edges_[e].from : bends_[e].back()].x;
  }

  static std::string at(double x, double y) { return fmt::format("{:.0f} {:.0f}", x, y); }

  void route_straight(size_t e, double port) {
    LayoutEdge& edge = edges_[e];
    const LayoutBox &from = boxes_[edge.from], &to = boxes_[edge.to];
    std::vector<LayoutPoint> points = {{from.x + from.width / 2, from.y + from.height}};
    for (size_t bend : bends_[e]) {
      size_t layer = items_[bend].layer;
      double x = items_[bend].x + columns_[column_of_[layer]].shift;
      points.push_back({x, tops_[layer]});
      points.push_back({x, tops_[layer] + layer_height(layer) - options_.layer_gap});
    }
    points.push_back({port, to.y});
    edge.path = "M" + at(points[0].x, points[0].y);
    for (size_t i = 1; i < points.size(); ++i) {
      const LayoutPoint &a = points[i - 1], &b = points[i];
      if (std::abs(a.x - b.x) < 0.5) {
        edge.path += fmt::format("V{:.0f}", b.y);
      } else {
        double bow = std::max(8.0, (b.y - a.y) / 2);
        edge.path += "C" + at(a.x, a.y + bow) + " " + at(b.x, b.y - bow) + " " + at(b.x, b.y);
      }
    }
    const LayoutPoint& last = points[points.size() - 2];
    edge.middle = {(last.x + port) / 2, (last.y + to.y) / 2};
  }

  // Down into the gap, sideways to the gutter, along it, and through the gap above the consumer;
  // with two gutters, over the top of the columns between them.
  void route_through_gutters(LayoutEdge& edge, double port, const std::vector<double>& xs,
                             double lane_y) {
    const LayoutBox &from = boxes_[edge.from], &to = boxes_[edge.to];
    size_t layer = items_[edge.from].layer;
    double out = tops_[layer] + layer_height(layer) - 0.62 * options_.layer_gap;
    double in = tops_[items_[edge.to].layer] - 0.38 * options_.layer_gap;
    std::vector<LayoutPoint> points = {{from.x + from.width / 2, from.y + from.height},
                                       {from.x + from.width / 2, out},
                                       {xs[0], out}};
    if (xs.size() > 1) {
      points.push_back({xs[0], lane_y});
      points.push_back({xs[1], lane_y});
    }
    points.push_back({xs.back(), in});
    points.push_back({port, in});
    points.push_back({port, to.y});
    edge.path = "M" + at(points[0].x, points[0].y);
    for (size_t i = 1; i + 1 < points.size(); ++i) {
      const LayoutPoint &a = points[i - 1], &b = points[i], &c = points[i + 1];
      double before = std::hypot(b.x - a.x, b.y - a.y), after = std::hypot(c.x - b.x, c.y - b.y);
      double radius = std::min({kCorner, before / 2, after / 2});
      auto towards = [&](const LayoutPoint& p, double length) {
        double part = length > 0 ? radius / length : 0;
        return at(b.x + (p.x - b.x) * part, b.y + (p.y - b.y) * part);
      };
      edge.path += "L" + towards(a, before) + "Q" + at(b.x, b.y) + " " + towards(c, after);
    }
    edge.path += "L" + at(port, to.y);
    edge.middle = {port, (in + to.y) / 2};
  }

  std::vector<LayoutBox>& boxes_;
  std::vector<LayoutEdge>& edges_;
  const LayoutOptions& options_;
  std::vector<std::vector<size_t>> bends_;  // of each edge
  std::vector<Item> items_;                 // the boxes first
  std::vector<std::vector<size_t>> layers_;
  std::vector<Column> columns_;
  std::vector<size_t> column_of_;                     // of a layer
  std::vector<double> tops_;                          // of a layer, within its column
  std::map<size_t, std::map<size_t, size_t>> lanes_;  // of a gutter, by producer
};

}  // namespace

LayoutSize lay_out(std::vector<LayoutBox>& boxes, std::vector<LayoutEdge>& edges,
                   const LayoutOptions& options) {
  return Layered(boxes, edges, options).run();
}

}  // namespace collage
