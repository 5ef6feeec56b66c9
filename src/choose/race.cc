#include "choose/race.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "measure/blocks.h"

namespace collage {

namespace {

struct Player {
  size_t index;
  RunBlock run;
  std::vector<std::vector<double>> rounds = {};  // a block each
  std::vector<Block> blocks = {};

  void add(std::vector<double> samples) {
    blocks.push_back(block_of(samples));
    rounds.push_back(std::move(samples));
  }
  // Of the first so many rounds the samples that count.
  std::vector<double> samples_of_first(size_t count) const {
    std::vector<double> kept;
    for (size_t b : undisturbed(std::span(blocks).first(std::min(count, blocks.size()))))
      kept.insert(kept.end(), rounds[b].begin(), rounds[b].end());
    return kept;
  }
  double median_of_first(size_t count) const { return median(samples_of_first(count)); }
};

// A figure of another scale; of its blocks nothing is known there.
Measured scaled(Measured figure, double factor) {
  figure.blocks.clear();
  for (double* seconds : {&figure.median, &figure.p10, &figure.p90}) *seconds *= factor;
  return figure;
}

// Everybody in one group. Leaves the winner in `players`; figures go to `racers`.
Status play(std::vector<Player>& players, std::vector<Racer>& racers, const RaceOptions& options) {
  std::vector<Player> out;
  auto drop_last = [&] {
    out.push_back(std::move(players.back()));
    out.back().run = nullptr;
    players.pop_back();
  };
  constexpr double kFirstPart = 0.25;  // of a block, while more than two are left
  double spent = 0, part = kFirstPart;
  for (int round = 0; round == 0 || players.size() > 1; ++round) {
    if (players.size() <= 2) part = 1;
    for (size_t k = 0; k < players.size(); ++k) {  // there and back: none always follows the same
      Player& player = players[round % 2 == 0 ? k : players.size() - 1 - k];
      std::vector<double> samples;
      Status status = player.run(part, samples);
      if (!status.ok() || samples.empty())
        return status.ok() ? internal_error("a block without a run") : status;
      spent = std::accumulate(samples.begin(), samples.end(), spent);
      player.add(std::move(samples));
    }
    size_t rounds = static_cast<size_t>(round) + 1;
    std::stable_sort(players.begin(), players.end(), [&](const Player& a, const Player& b) {
      return a.median_of_first(rounds) < b.median_of_first(rounds);
    });
    if (players.size() > 2) {
      if (rounds < options.least_blocks) continue;
      part = std::min(1.0, 2 * part);
      size_t keep = (players.size() + 1) / 2;
      while (players.size() > keep) drop_last();
      const double reached = likely_interval(of_blocks(players[0].blocks)).high;
      while (players.size() > 2 && likely_interval(of_blocks(players.back().blocks)).low > reached)
        drop_last();
    } else if (players.size() == 2) {
      Interval best = median_interval(players[0].samples_of_first(rounds));
      Interval other = median_interval(players[1].samples_of_first(rounds));
      bool surely = other.low > (1 + options.surely) * best.high;
      bool enough = round + 1 >= options.blocks ||
                    (rounds >= options.least_blocks && spent >= options.seconds);
      if (surely || enough) drop_last();
    }
  }

  const Player& winner = players[0];
  size_t all = winner.rounds.size();
  // What the winner's time changed by since the rounds that a player took part in.
  auto drift = [&](const Player& player) {
    return winner.median_of_first(all) / winner.median_of_first(player.rounds.size());
  };
  // The group's scale is that of the one whose figure was known.
  double scale = 1;
  auto take_scale = [&](const Player& player) {
    if (const std::optional<Measured>& figure = racers[player.index].measured)
      scale = figure->median / (player.median_of_first(all) * drift(player));
  };
  take_scale(winner);
  for (const Player& player : out) take_scale(player);
  auto fill = [&](const Player& player) {
    if (racers[player.index].measured) return;
    racers[player.index].measured =
        scaled(summarise(player.samples_of_first(all)), scale * drift(player));
  };
  fill(winner);
  for (const Player& player : out) fill(player);
  return {};
}

// The two with the best figures, the best first; one, or none, where there are no more.
std::vector<size_t> two_best(const std::vector<Racer>& racers) {
  std::vector<size_t> ranking;
  for (size_t i = 0; i < racers.size(); ++i)
    if (racers[i].measured && racers[i].failure.empty()) ranking.push_back(i);
  std::stable_sort(ranking.begin(), ranking.end(), [&](size_t a, size_t b) {
    return racers[a].measured->median < racers[b].measured->median;
  });
  ranking.resize(std::min<size_t>(ranking.size(), 2));
  return ranking;
}

// Two players by as many rounds as there may be. What they take here are their figures, and the
// others' move with the first one's.
Status play_final(std::vector<Player>& players, std::vector<Racer>& racers, RaceOptions options) {
  const size_t first = players[0].index;
  const double before = racers[first].measured->median;
  for (const Player& player : players) racers[player.index].measured.reset();
  options.surely = std::numeric_limits<double>::infinity();
  options.seconds *= 2;
  const std::vector<size_t> met = {players[0].index, players[1].index};
  TRY(play(players, racers, options));
  const double factor = racers[first].measured->median / before;
  for (size_t i = 0; i < racers.size(); ++i)
    if (racers[i].measured && i != met[0] && i != met[1])
      racers[i].measured = scaled(*racers[i].measured, factor);
  return {};
}

}  // namespace

Result<std::optional<size_t>> run_race(std::vector<Racer>& racers, const Prepare& prepare,
                                       const RaceOptions& options) {
  auto best = [&]() -> std::optional<size_t> {
    const std::vector<size_t> ranking = two_best(racers);
    return ranking.empty() ? std::nullopt : std::optional(ranking[0]);
  };
  const bool fresh = !best();
  std::vector<size_t> waiting;
  for (size_t i = 0; i < racers.size(); ++i)
    if (!racers[i].measured && racers[i].failure.empty()) waiting.push_back(i);
  std::vector<Player> players;
  auto enter = [&](size_t index) {
    Result<RunBlock> run = prepare(index);
    if (run) {
      players.push_back({index, std::move(run).value()});
    } else {
      racers[index].failure = run.status().to_string();
    }
  };
  size_t next = 0, groups = 0;
  bool go_on = true;
  if (!waiting.empty() && best()) enter(*best());
  while (go_on && next < waiting.size()) {
    size_t before = next;
    while (next < waiting.size() && players.size() < std::max<size_t>(2, options.alive)) {
      // The first that computes right is good enough where time is up.
      go_on = players.empty() || options.go_on(next, waiting.size());
      if (!go_on) break;
      enter(waiting[next++]);
    }
    if (players.empty() || next == before) continue;
    // Where more groups follow, or came before, the two best meet again.
    RaceOptions in_group = options;
    if (fresh && (before > 0 || next < waiting.size()))
      in_group.blocks = static_cast<int>(options.least_blocks);
    TRY(play(players, racers, in_group));
    players[0].rounds.clear();
    players[0].blocks.clear();
    ++groups;
  }
  if (fresh && groups > 1 && go_on) {
    const std::vector<size_t> finalists = two_best(racers);
    std::erase_if(players, [&](const Player& player) {
      return std::find(finalists.begin(), finalists.end(), player.index) == finalists.end();
    });
    for (size_t index : finalists)
      if (players.empty() || players[0].index != index) enter(index);
    if (players.size() == 2) TRY(play_final(players, racers, options));
  }
  const std::optional<size_t> winner = best();
  if (winner && !players.empty() && players[0].index == *winner)
    racers[*winner].run = std::move(players[0].run);
  return winner;
}

}  // namespace collage
