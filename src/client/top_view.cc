#include "client/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string_view>
#include <tuple>

#include "client/api.h"
#include "client/tables.h"
#include "client/text.h"
#include "model/node.h"

namespace voda {

namespace {

constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
constexpr char kUnnamed = '*';               // a job without a letter
constexpr std::int64_t kMostGpus = 1 << 20;  // most GPUs that a node is drawn with, against overflow
constexpr int kStatusCells = 9;
constexpr int kSizeCells = 9;
constexpr int kPercentCells = 4;
constexpr int kEtaCells = 8;

using Tone = Style::Tone;

Tone ToneOf(const Value& job) {
  const std::optional<JobStatus> status = StatusOf(job);
  if (status == JobStatus::kRunning) return Tone::kGood;
  if (status == JobStatus::kFailed) return Tone::kBad;
  return HasEnded(job) ? Tone::kFaint : Tone::kPending;
}

bool IsIn(const Value& node, NodeState state) {
  return node["state"].Text() == Name(state);
}

int ColorOf(char letter) {
  const auto at = kLetters.find(letter);
  return at == kLetters.npos ? -1 : static_cast<int>(at);
}

// Fills one line from the left and cuts what does not fit.
class LineBuilder {
 public:
  explicit LineBuilder(int width) : left_(width) {}

  void Add(std::string_view printable, Style style = {}) {
    std::string text = Cut(printable, left_);
    left_ -= CellWidth(text);
    if (text.empty()) return;
    if (!line_.empty() && Same(line_.back().style, style)) {
      line_.back().text += text;
    } else {
      line_.push_back({std::move(text), style});
    }
  }
  void Pad(int cells) { Add(std::string(std::max(0, cells), ' ')); }
  int left() const { return left_; }
  ScreenLine Take() { return std::move(line_); }

 private:
  static bool Same(const Style& a, const Style& b) {
    return std::tie(a.job, a.tone, a.bold, a.reverse) == std::tie(b.job, b.tone, b.bold, b.reverse);
  }

  int left_;
  ScreenLine line_;
};

// Keeps the end of a name, where the time of submission tells jobs of one category apart.
std::string CutMiddle(const std::string& printable, int width) {
  constexpr int kEnd = 11;
  if (CellWidth(printable) <= width || width < 2 * kEnd) return Cut(printable, width);
  if (std::any_of(printable.begin(), printable.end(), [](char c) { return c < ' '; })) {
    return Cut(printable, width);  // not ASCII
  }
  return printable.substr(0, width - kEnd - 1) + "~" + printable.substr(printable.size() - kEnd);
}

std::string Bar(double share, int cells) {
  const double clamped = std::isfinite(share) ? std::clamp(share, 0.0, 1.0) : 0.0;
  const int full = static_cast<int>(std::floor(clamped * cells + 1e-9));
  return std::string(full, '#') + std::string(cells - full, '.');
}

// Draws one cell for each worker up to max, or fewer if there is no room: held, planned, possible.
std::string SizeBar(const Value& job, int cells) {
  const auto max = std::max<std::int64_t>(1, job["max"].Whole());
  const int room = static_cast<int>(std::min<std::int64_t>(max, cells));
  const auto scaled = [&](std::int64_t workers) {
    const auto in = static_cast<double>(std::clamp<std::int64_t>(workers, 0, max));
    return static_cast<int>(std::ceil(in * room / static_cast<double>(max) - 1e-9));
  };
  const int held = scaled(job["workers"].Whole());
  const int planned = scaled(job["planned"].Whole());
  std::string bar;
  for (int i = 0; i < room; ++i)
    bar += i < held && i < planned ? '#' : i < held ? '-' : i < planned ? '+' : '.';
  return bar;
}

class Renderer {
 public:
  Renderer(const TopData& data, const TopView& view)
      : data_(data), view_(view), letters_(JobLetters(data.jobs)) {
    for (const Value& job : data.jobs) {
      gpus_per_worker_[job["name"].Text()] = std::max<std::int64_t>(1, job["gpus_per_worker"].Whole(1));
    }
    for (const Value& node : data.nodes) types_.insert(node["gpu_type"].Text());
  }

  TopPicture Run() {
    Header();
    if (!data_.trouble.empty()) {
      Put({{"connection lost: " + data_.trouble, {.tone = Tone::kBad, .bold = true}}});
    }
    const int body = view_.height - static_cast<int>(lines_.size()) - 1;
    if (view_.help) {
      Help();
    } else {
      Body(body);
    }
    while (static_cast<int>(lines_.size()) < view_.height - 1) lines_.emplace_back();
    lines_.resize(std::max(0, view_.height - 1));
    if (view_.height > 0) Footer();
    picture_.lines = std::move(lines_);
    return std::move(picture_);
  }

 private:
  std::string Clean(const Value& text) const { return Printable(text.Text(), view_.ascii); }

  void Put(const std::vector<Span>& spans) {
    LineBuilder line(view_.width);
    for (const Span& span : spans) line.Add(Printable(span.text, view_.ascii), span.style);
    lines_.push_back(line.Take());
  }

  void Header() {
    LineBuilder line(view_.width);
    const Style bar{.bold = true, .reverse = true};
    line.Add(" voda ", bar);
    const auto scheme = data_.server.find("://");
    const std::string host = scheme == std::string::npos ? data_.server : data_.server.substr(scheme + 3);
    line.Add(fmt::format("{}  {}  GPUs {}/{} ", Printable(host, view_.ascii),
                         Printable(data_.algorithm, view_.ascii), data_.info["gpus_used"].Whole(),
                         data_.info["gpus"].Whole()),
             {.reverse = true});
    for (const JobStatus status : {JobStatus::kRunning, JobStatus::kWaiting, JobStatus::kSubmitted,
                                   JobStatus::kCompleted, JobStatus::kFailed, JobStatus::kCanceled}) {
      const auto count = data_.info["jobs"][Name(status)].Whole();
      const bool always = status == JobStatus::kRunning || status == JobStatus::kWaiting;
      if (count > 0 || always) line.Add(fmt::format(" {} {}", Name(status), count), {.reverse = true});
    }
    if (const auto guessed = std::count_if(data_.jobs.begin(), data_.jobs.end(), IsGuessed); guessed > 0)
      line.Add(fmt::format("  Guessed {}", guessed), {.reverse = true});
    const std::string clock = data_.now > 0 ? LocalClock(data_.now) + " " : "";
    const int gap = line.left() - CellWidth(clock);
    if (gap >= 0) {
      line.Add(std::string(gap, ' '), {.reverse = true});
      line.Add(clock, {.reverse = true});
    } else {
      line.Add(std::string(std::max(0, line.left()), ' '), {.reverse = true});
    }
    lines_.push_back(line.Take());
  }

  void Title(std::string_view text) { Put({{std::string(text), {.bold = true}}}); }

  void Body(int room) {
    const int decisions = room >= 14 ? std::max(4, room / 4) : room >= 9 ? 3 : 0;  // including their title
    const int shown = DecisionCount() == 0 ? 0 : std::min(decisions, DecisionCount() + 1);
    const auto before = lines_.size();
    if (room >= 6 && !data_.nodes.empty()) Nodes(std::max(2, (room - shown) / 3));
    Jobs(room - static_cast<int>(lines_.size() - before) - shown);
    Decisions(shown);
  }

  // Takes at most `room` lines, including the title.
  void Nodes(int room) {
    int name = 4;
    std::int64_t gpus = 1;
    std::size_t type = 0;
    bool states = false;
    for (const Value& node : data_.nodes) {
      name = std::max(name, CellWidth(Clean(node["name"])));
      gpus = std::max(gpus, node["gpus"].Whole());
      if (types_.size() > 1) type = std::max(type, Clean(node["gpu_type"]).size());
      states = states || !IsIn(node, NodeState::kReady);
    }
    name = std::min(name, 20);
    const int type_cells = static_cast<int>(std::min<std::size_t>(type, 14));
    const int fixed = name + 1 + (type_cells > 0 ? type_cells + 1 : 0) + 10 + 2 + (states ? 9 : 0);
    const int slots = static_cast<int>(std::min<std::int64_t>(gpus, std::max(1, view_.width - fixed)));
    const int cell = fixed + slots;
    const int columns = std::max(1, (view_.width + 2) / (cell + 2));
    const int count = static_cast<int>(data_.nodes.size());
    const int rows = std::min((count + columns - 1) / columns, room - 1);
    Title(rows * columns < count ? fmt::format("NODES ({} of {} shown)", rows * columns, count) : "NODES");
    for (int row = 0; row < rows; ++row) {
      LineBuilder line(view_.width);
      for (int column = 0; column < columns; ++column) {
        const int index = column * rows + row;  // fill columns first
        if (index >= count) break;
        if (column > 0) line.Pad(2);
        Node(line, data_.nodes[index], name, type_cells, slots, states);
      }
      lines_.push_back(line.Take());
    }
  }

  void Node(LineBuilder& line, const Value& node, int name, int type, int slots, bool states) const {
    const bool ready = IsIn(node, NodeState::kReady);
    const Tone tone = ready ? Tone::kPlain : IsIn(node, NodeState::kLost) ? Tone::kBad : Tone::kPending;
    line.Add(Fit(Clean(node["name"]), name) + " ", {.tone = tone});
    if (type > 0) line.Add(Fit(Clean(node["gpu_type"]), type) + " ", {.tone = Tone::kFaint});
    line.Add(Fit(fmt::format("{}/{}", node["used"].Whole(), node["gpus"].Whole()), 9) + " ");
    line.Add("[");
    const std::string bar = Slots(node, slots);
    for (const char c : bar) {
      const int color = ColorOf(c);
      line.Add(std::string(1, c), color >= 0 ? Style{.job = color} : Style{.tone = Tone::kFaint});
    }
    line.Add("]");
    line.Pad(slots - static_cast<int>(bar.size()));
    if (states) line.Add(PadRight(ready ? "" : " " + Clean(node["state"]), 9), {.tone = tone});
  }

  // The letter of the job in each slot; a node with more GPUs than cells is drawn to scale.
  std::string Slots(const Value& node, int cells) const {
    const auto gpus = std::clamp<std::int64_t>(node["gpus"].Whole(), 0, kMostGpus);
    const int width = static_cast<int>(std::min<std::int64_t>(gpus, cells));
    std::string bar(width, IsIn(node, NodeState::kLost) ? 'x' : IsIn(node, NodeState::kReady) ? '.' : '-');
    std::int64_t taken = 0;
    const auto fill = [&](std::int64_t count, char letter) {
      const auto end = std::min(gpus, taken + std::max<std::int64_t>(0, count));
      const auto cell = [&](std::int64_t slot) { return slot * width / std::max<std::int64_t>(1, gpus); };
      for (std::int64_t i = cell(taken); i < cell(end); ++i) bar[i] = letter;
      taken = end;
    };
    for (const Value& job : node["jobs"].items()) {
      const std::string& name = job["name"].Text();
      const auto letter = letters_.find(name);
      const auto per = gpus_per_worker_.find(name);
      const auto workers = std::clamp<std::int64_t>(job["workers"].Whole(), 0, kMostGpus);
      const auto each = std::min<std::int64_t>(per == gpus_per_worker_.end() ? 1 : per->second, kMostGpus);
      fill(workers * each, letter == letters_.end() ? kUnnamed : letter->second);
    }
    fill(std::clamp<std::int64_t>(node["used"].Whole(), 0, kMostGpus) - taken, kUnnamed);
    return bar;
  }

  void Jobs(int room) {
    const int count = static_cast<int>(data_.jobs.size());
    const int rows = std::max(0, room - 1);
    picture_.page = rows;
    picture_.scroll = std::clamp(view_.scroll, 0, std::max(0, count - rows));
    if (room <= 0) return;
    const std::size_t end = lines_.size() + room;
    int longest = 8;
    for (const Value& job : data_.jobs) longest = std::max(longest, CellWidth(Clean(job["name"])));

    // The name gets the cells that it needs, then both bars grow.
    const int fixed = 2 + 1 + kStatusCells + 1 + kSizeCells + 1 + 3 + 3 + kPercentCells + 1 + kEtaCells;
    int spare = view_.width - fixed - 6 - 8;
    const int name = std::clamp(spare, 8, longest);
    spare = std::max(0, spare - name);
    const int size_bar = 6 + std::min(10, spare / 3);
    const int progress_bar = 8 + std::min(40, spare - (size_bar - 6));

    LineBuilder title(view_.width);
    title.Add(fmt::format("  {} {} {} {} {} {:>{}}", Fit(fmt::format("JOBS ({})", count), name),
                          Fit("STATUS", kStatusCells), Fit("SIZE", kSizeCells), Fit("", size_bar + 2),
                          Fit("PROGRESS", progress_bar + 2 + 1 + kPercentCells), "ETA", kEtaCells),
              {.bold = true});
    lines_.push_back(title.Take());
    for (int i = picture_.scroll; i < count && i < picture_.scroll + rows; ++i) {
      Job(data_.jobs[i], name, size_bar, progress_bar);
    }
    if (count == 0 && rows > 0) {
      Put({{"  no jobs yet; submit one with: voda create -f FILE", {.tone = Tone::kFaint}}});
    }
    while (lines_.size() < end) lines_.emplace_back();  // the decisions stay at the bottom
  }

  void Job(const Value& job, int name, int size_bar, int progress_bar) {
    LineBuilder line(view_.width);
    const bool ended = HasEnded(job);
    const Style plain{.tone = ended ? Tone::kFaint : Tone::kPlain};
    const auto letter = letters_.find(job["name"].Text());
    const char mark = letter == letters_.end() ? ' ' : letter->second;
    const int color = ColorOf(mark);
    line.Add(std::string(1, mark), color >= 0 ? Style{.job = color} : plain);
    line.Add(" " + PadRight(CutMiddle(Clean(job["name"]), name), name) + " ", plain);
    line.Add(Fit(job["held"].Flag() && !ended ? "Held" : Clean(job["status"]), kStatusCells) + " ",
             {.tone = ToneOf(job)});
    line.Add(Fit(fmt::format("{}/{}-{}", job["workers"].Whole(), job["min"].Whole(), job["max"].Whole()),
                 kSizeCells) +
                 " ",
             plain);
    line.Add(ended ? std::string(size_bar + 3, ' ')
                   : PadRight("[" + SizeBar(job, size_bar) + "]", size_bar + 2) + " ",
             color >= 0 ? Style{.job = color} : plain);
    const Value& share = job["progress"]["fraction"];
    if (share.number()) {
      line.Add("[" + Bar(share.Number(), progress_bar) + "]", plain);
      line.Add(fmt::format(" {:>{}}",
                           fmt::format("{:.0f}%", std::floor(100 * std::clamp(share.Number(), 0.0, 1.0))),
                           kPercentCells),
               plain);
    } else {
      line.Pad(progress_bar + 2 + 1 + kPercentCells);
    }
    const std::string eta = EtaOf(job);
    line.Add(fmt::format(" {:>{}}", eta == "<none>" ? "" : eta, kEtaCells), plain);
    lines_.push_back(line.Take());
  }

  int DecisionCount() const {
    int count = 0;
    for (const Value& round : data_.rounds) count += static_cast<int>(round["changes"].items().size());
    return count;
  }

  void Decisions(int room) {
    if (room <= 1) return;
    Title("DECISIONS");
    int left = room - 1;
    for (const Value& round : data_.rounds) {
      for (const Value& change : round["changes"].items()) {
        if (left-- <= 0) return;
        LineBuilder line(view_.width);
        const auto letter = letters_.find(change["job"].Text());
        const char mark = letter == letters_.end() ? ' ' : letter->second;
        line.Add(std::string(1, mark), Style{.job = ColorOf(mark)});
        line.Add(fmt::format(" {} ", LocalClock(round["time"].Number())), {.tone = Tone::kFaint});
        line.Add(CutMiddle(Clean(change["job"]), std::max(12, view_.width / 3)) + " ");
        line.Add(fmt::format("{}->{} ", change["from"].Whole(), change["to"].Whole()), {.bold = true});
        line.Add(Clean(change["reason"]), {.tone = Tone::kFaint});
        lines_.push_back(line.Take());
      }
    }
  }

  void Help() {
    static constexpr std::array<const char*, 16> kHelp = {
        "",
        "  q, Ctrl-C          quit",
        "  j k, arrows        scroll the jobs by one",
        "  space b, page keys by a page",
        "  g G, Home End      to the first, the last",
        "  Ctrl-L             draw anew",
        "  ?                  this help; any key leaves it",
        "",
        "  Each cell of a node is a GPU with the letter of its job: . free, - closed for",
        "  new workers, x lost, * another user. Large nodes are drawn to scale.",
        "  SIZE is workers/min-max; in its bar # is held, + planned and not yet there,",
        "  - held and to be given back, . possible. An ETA with ~ is a guess: the job has",
        "  reported no progress (docs/PROGRESS.md). \"Guessed\" at the top counts such jobs.",
        "",
        "  voda explain JOB says why a job has its size; voda describe job JOB has its",
        "  history.",
    };
    for (const char* line : kHelp) Put({{line, {}}});
  }

  void Footer() {
    const int count = static_cast<int>(data_.jobs.size());
    std::string text = "q quit  j/k scroll  ? help";
    if (!view_.help && picture_.page > 0 && count > picture_.page) {
      text += fmt::format("  jobs {}-{} of {}", picture_.scroll + 1,
                          std::min(count, picture_.scroll + picture_.page), count);
    }
    Put({{text, {.tone = Tone::kFaint}}});
  }

  const TopData& data_;
  const TopView& view_;
  std::map<std::string, char> letters_;
  std::map<std::string, std::int64_t> gpus_per_worker_;
  std::set<std::string> types_;
  std::vector<ScreenLine> lines_;
  TopPicture picture_;
};

}  // namespace

TopPicture RenderTop(const TopData& data, const TopView& view) {
  return Renderer(data, view).Run();
}

std::map<std::string, char> JobLetters(const Value::List& jobs) {
  std::vector<std::pair<std::int64_t, std::string>> live;
  for (const Value& job : jobs) {
    if (!HasEnded(job)) live.emplace_back(job["id"].Whole(), job["name"].Text());
  }
  std::sort(live.begin(), live.end());
  std::map<std::string, char> letters;
  std::array<bool, kLetters.size()> taken{};
  for (const auto& [id, name] : live) {
    const std::size_t wanted = (id < 1 ? 0 : id - 1) % kLetters.size();
    for (std::size_t step = 0; step < kLetters.size(); ++step) {
      const std::size_t index = (wanted + step) % kLetters.size();
      if (taken[index]) continue;
      taken[index] = true;
      letters.emplace(name, kLetters[index]);
      break;
    }
  }
  return letters;
}

void SortForTop(Value::List& jobs) {
  const auto rank = [](const Value& job) {
    return StatusOf(job) == JobStatus::kRunning ? 0 : HasEnded(job) ? 2 : 1;
  };
  std::stable_sort(jobs.begin(), jobs.end(), [&](const Value& a, const Value& b) {
    const int ra = rank(a);
    const int rb = rank(b);
    if (ra != rb) return ra < rb;
    if (ra == 2 && a["ended"].Number() != b["ended"].Number()) {
      return a["ended"].Number() > b["ended"].Number();
    }
    return a["id"].Whole() < b["id"].Whole();
  });
}

std::string ToAnsi(const ScreenLine& line, bool color) {
  // These colours can be told apart on dark and on light backgrounds.
  constexpr std::array<int, 12> kJobColors = {32, 36, 35, 33, 34, 31, 92, 96, 95, 93, 94, 91};
  std::string out;
  for (const Span& span : line) {
    std::string codes;
    const auto add = [&](int code) { codes += fmt::format("{}{}", codes.empty() ? "" : ";", code); };
    if (span.style.bold) add(1);
    if (span.style.reverse) add(7);
    if (color && span.style.job >= 0) add(kJobColors[span.style.job % kJobColors.size()]);
    if (color && span.style.tone == Tone::kGood) add(32);
    if (color && span.style.tone == Tone::kPending) add(33);
    if (color && span.style.tone == Tone::kBad) add(31);
    if (color && span.style.tone == Tone::kFaint) add(2);
    out += codes.empty() ? span.text : fmt::format("\x1b[{}m{}\x1b[0m", codes, span.text);
  }
  return out;
}

std::string ToPlain(const ScreenLine& line) {
  std::string out;
  for (const Span& span : line) out += span.text;
  return out;
}

}  // namespace voda
