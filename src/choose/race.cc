#include "choose/race.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
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
  void forget() {
    rounds.clear();
    blocks.clear();
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

using Meetings = std::set<std::pair<size_t, size_t>>;  // of two to the end, the lower index first

// What decides.
double charged(const Racer& racer) { return racer.measured->median + racer.charge; }

bool is_like(double seconds, double fastest) { return seconds <= (1 + kAlike) * fastest; }

// Everybody in one group. Leaves the winner in `players`; figures go to `racers`.
Status play(std::vector<Player>& players, std::vector<Racer>& racers, const RaceOptions& options,
            Meetings& met) {
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
    const auto charge = [&](const Player& player) { return racers[player.index].charge; };
    const auto figure = [&](const Player& player) {
      return player.median_of_first(rounds) + charge(player);
    };
    std::stable_sort(players.begin(), players.end(),
                     [&](const Player& a, const Player& b) { return figure(a) < figure(b); });
    if (players.size() > 2) {
      if (rounds < options.least_blocks) continue;
      part = std::min(1.0, 2 * part);
      size_t keep = (players.size() + 1) / 2;
      while (players.size() > keep) drop_last();
      const auto likely = [&](const Player& player) {
        const Interval alone = likely_interval(of_blocks(player.blocks));
        return Interval{alone.low + charge(player), alone.high + charge(player)};
      };
      const double reached = likely(players[0]).high;
      while (players.size() > 2 && likely(players.back()).low > reached) drop_last();
    } else if (players.size() == 2) {
      Interval best = median_interval(players[0].samples_of_first(rounds));
      Interval other = median_interval(players[1].samples_of_first(rounds));
      bool surely =
          other.low + charge(players[1]) > (1 + options.surely) * (best.high + charge(players[0]));
      bool enough = round + 1 >= options.blocks ||
                    (rounds >= options.least_blocks && spent >= options.seconds);
      if (!surely && !enough) continue;
      met.insert(std::minmax(players[0].index, players[1].index));
      if (racers[players[1].index].rank < racers[players[0].index].rank &&
          is_like(figure(players[1]), figure(players[0])))
        std::swap(players[0], players[1]);
      drop_last();
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
  std::stable_sort(ranking.begin(), ranking.end(),
                   [&](size_t a, size_t b) { return charged(racers[a]) < charged(racers[b]); });
  ranking.resize(std::min<size_t>(ranking.size(), 2));
  return ranking;
}

// Two players by as many rounds as there may be. What they take here are their figures, and the
// others' move with the first one's.
Status play_final(std::vector<Player>& players, std::vector<Racer>& racers, RaceOptions options,
                  Meetings& met) {
  const size_t first = players[0].index;
  const double before = racers[first].measured->median;
  for (const Player& player : players) racers[player.index].measured.reset();
  options.surely = std::numeric_limits<double>::infinity();
  options.seconds *= 2;
  const size_t second = players[1].index;
  TRY(play(players, racers, options, met));
  const double factor = racers[first].measured->median / before;
  for (size_t i = 0; i < racers.size(); ++i)
    if (racers[i].measured && i != first && i != second)
      racers[i].measured = scaled(*racers[i].measured, factor);
  return {};
}

// Whom the fastest has to meet yet: the first in rank that may be like it, else who won last, where
// the fastest was dropped early and may have had luck; itself: nobody.
size_t rival_of(size_t fastest, size_t last, const std::vector<Racer>& racers,
                const Meetings& met) {
  std::map<size_t, size_t> by_rank;
  for (size_t i = 0; i < racers.size(); ++i)
    if (racers[i].measured && racers[i].failure.empty() && racers[i].rank < racers[fastest].rank)
      by_rank.emplace(racers[i].rank, i);
  for (const auto& [rank, i] : by_rank) {
    const bool have_met = met.contains(std::minmax(i, fastest));
    const double doubt = have_met ? 0
                                  : 2 * std::hypot(error_in_turns(*racers[i].measured),
                                                   error_in_turns(*racers[fastest].measured));
    if (is_like(charged(racers[i]) - doubt, charged(racers[fastest])))
      return have_met ? fastest : i;
  }
  return met.contains(std::minmax(last, fastest)) ? fastest : last;
}

}  // namespace

std::optional<size_t> winner_of(const std::vector<Racer>& racers) {
  const std::vector<size_t> ranking = two_best(racers);
  if (ranking.empty()) return std::nullopt;
  size_t winner = ranking[0];
  const double fastest = charged(racers[winner]);
  for (size_t i = 0; i < racers.size(); ++i)
    if (racers[i].measured && racers[i].failure.empty() && racers[i].rank < racers[winner].rank &&
        is_like(charged(racers[i]), fastest))
      winner = i;
  return winner;
}

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
  Meetings met;
  const auto meet = [&](const std::vector<size_t>& two) -> Status {
    const auto is_in = [&](size_t index) {
      return std::find(two.begin(), two.end(), index) != two.end();
    };
    std::erase_if(players, [&](const Player& player) { return !is_in(player.index); });
    for (Player& player : players) player.forget();
    for (size_t index : two)
      if (players.empty() || players[0].index != index) enter(index);
    return players.size() == 2 ? play_final(players, racers, options, met) : Status();
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
    TRY(play(players, racers, in_group, met));
    players[0].forget();
    ++groups;
  }
  if (fresh && groups > 1 && go_on) {
    met.clear();  // they met for a few blocks
    TRY(meet(two_best(racers)));
  }
  for (int meeting = 0; fresh && go_on && !players.empty() && meeting < options.meetings;
       ++meeting) {
    const size_t fastest = *best(), other = rival_of(fastest, players[0].index, racers, met);
    if (other == fastest) break;
    TRY(meet({fastest, other}));
  }
  const std::optional<size_t> winner = winner_of(racers);
  if (winner && !players.empty() && players[0].index == *winner)
    racers[*winner].run = std::move(players[0].run);
  return winner;
}

}  // namespace collage
