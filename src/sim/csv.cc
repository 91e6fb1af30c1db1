#include "sim/csv.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <utility>

namespace voda::sim {
namespace {

constexpr std::size_t kMaxColumns = 1024;
constexpr std::size_t kShownBytes = 60;

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose(file); }
};

}  // namespace

// Reads bytes one at a time, from a file or from memory. gzread passes plain files through.
class CsvReader::Source {
 public:
  static constexpr int kEnd = -1;

  explicit Source(std::string_view text) : chunk_(text) {}
  explicit Source(gzFile_s* file) : file_(file), buffer_(1 << 16, '\0') {}

  int Peek() { return at_ < chunk_.size() || Fill() ? static_cast<unsigned char>(chunk_[at_]) : kEnd; }
  int Take() {
    const int byte = Peek();
    if (byte != kEnd) ++at_;
    return byte;
  }
  // Why reading stopped before the end; empty if it did not.
  const std::string& problem() const { return problem_; }

 private:
  bool Fill() {
    if (!file_ || !problem_.empty()) return false;
    if (total_ >= kMaxCsvBytes) {
      problem_ = fmt::format("holds more than {} bytes uncompressed; split it", kMaxCsvBytes);
      return false;
    }
    const int got = gzread(file_.get(), buffer_.data(), static_cast<unsigned>(buffer_.size()));
    if (got <= 0) {
      // A truncated gzip stream ends without a negative count; gzerror knows.
      int code = Z_OK;
      const char* text = gzerror(file_.get(), &code);
      if (code == Z_ERRNO) {
        problem_ = fmt::format("cannot be read: {}", std::strerror(errno));
      } else if (got < 0 || code == Z_BUF_ERROR) {
        problem_ = fmt::format("is damaged gzip ({}); fetch it again", text);
      }
      return false;
    }
    total_ += got;
    chunk_ = std::string_view(buffer_).substr(0, got);
    at_ = 0;
    return true;
  }

  std::unique_ptr<gzFile_s, CloseGz> file_;
  std::string buffer_;
  std::string_view chunk_;
  std::size_t at_ = 0;
  std::int64_t total_ = 0;
  std::string problem_;
};

CsvReader::CsvReader(std::string name, std::unique_ptr<Source> source)
    : name_(std::move(name)), source_(std::move(source)) {}
CsvReader::CsvReader(CsvReader&&) noexcept = default;
CsvReader& CsvReader::operator=(CsvReader&&) noexcept = default;
CsvReader::~CsvReader() = default;

Result<CsvReader> CsvReader::Open(const std::string& path, const CsvSchema& schema) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    return Error{fmt::format("{}: is a directory; name a CSV file", path)};
  }
  gzFile_s* file = gzopen(path.c_str(), "rbe");
  if (file == nullptr) {
    return Error{fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};
  }
  gzbuffer(file, 1 << 16);
  CsvReader reader(path, std::make_unique<Source>(file));
  if (auto error = reader.ReadHeader(schema)) return *std::move(error);
  return reader;
}

Result<CsvReader> CsvReader::FromText(std::string name, std::string_view text, const CsvSchema& schema) {
  CsvReader reader(std::move(name), std::make_unique<Source>(text));
  if (auto error = reader.ReadHeader(schema)) return *std::move(error);
  return reader;
}

std::optional<Error> CsvReader::ReadHeader(const CsvSchema& schema) {
  std::string wanted;
  for (const CsvColumn& column : schema.columns) {
    if (column.required) wanted += fmt::format("{}{}", wanted.empty() ? "" : ",", column.name);
    column_names_.push_back(column.name);
  }
  positions_.assign(schema.columns.size(), -1);

  for (const unsigned char mark : {0xEF, 0xBB, 0xBF}) {  // the byte order mark that spreadsheets write
    if (source_->Peek() == mark) source_->Take();
  }
  if (!ReadRow()) {
    if (!failed()) FailRow(fmt::format("is empty; the first line names the columns: {}", wanted));
    return error_;
  }
  width_ = field_ends_.size();
  std::vector<std::string_view> header;
  std::size_t begin = 0;
  for (const std::size_t end : field_ends_) {
    header.push_back(std::string_view(row_).substr(begin, end - begin));
    begin = end;
  }
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (std::find(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(i), header[i]) !=
        header.begin() + static_cast<std::ptrdiff_t>(i)) {
      FailRow(fmt::format("column {} appears twice; keep one", Quoted(header[i])));
      return error_;
    }
    const auto known = std::find(column_names_.begin(), column_names_.end(), header[i]);
    if (known != column_names_.end()) {
      positions_[known - column_names_.begin()] = static_cast<int>(i);
    } else if (!schema.allow_unknown) {
      FailRow(
          fmt::format("unknown column {}; known are {}", Quoted(header[i]), fmt::join(column_names_, ", ")));
      return error_;
    }
  }
  for (std::size_t i = 0; i < positions_.size(); ++i) {
    if (positions_[i] < 0 && schema.columns[i].required) {
      FailRow(fmt::format("column {} is missing; required are {}", column_names_[i], wanted));
      return error_;
    }
  }
  return std::nullopt;
}

bool CsvReader::Next() {
  if (!ReadRow()) return false;
  if (field_ends_.size() != width_) {
    FailRow(fmt::format("{} fields where the header has {}", field_ends_.size(), width_));
    return false;
  }
  if (++rows_ > kMaxCsvRows) {
    FailRow(fmt::format("more than {} rows; split the file", kMaxCsvRows));
    return false;
  }
  return true;
}

bool CsvReader::ReadRow() {
  if (failed()) return false;
  row_.clear();
  field_ends_.clear();

  while (source_->Peek() == '\n' || source_->Peek() == '\r') {  // empty lines
    if (source_->Take() == '\n') ++lines_read_;
  }
  line_ = lines_read_ + 1;
  if (source_->Peek() == Source::kEnd) {
    if (!source_->problem().empty()) FailRow(source_->problem());
    return false;
  }

  bool quoted = false;    // inside quotes
  bool closed = false;    // after the closing quote of a field
  std::size_t begin = 0;  // where the field begins
  std::size_t raw_bytes = 0;
  while (true) {
    const int byte = source_->Take();
    if (++raw_bytes > kMaxCsvRowBytes) {
      FailRow(fmt::format("longer than {} bytes; is a quote left open?", kMaxCsvRowBytes));
      return false;
    }
    if (byte == Source::kEnd) {
      if (!source_->problem().empty())
        FailRow(source_->problem());
      else if (quoted)
        FailRow("a quote is opened and never closed");
      if (failed()) return false;
      field_ends_.push_back(row_.size());
      return true;
    }
    if (byte == '\n') ++lines_read_;
    if (quoted) {
      if (byte != '"') {
        row_.push_back(static_cast<char>(byte));
      } else if (source_->Peek() == '"') {
        row_.push_back(static_cast<char>(source_->Take()));
      } else {
        quoted = false;
        closed = true;
      }
      continue;
    }
    if (byte == '\n' || byte == ',') {
      field_ends_.push_back(row_.size());
      if (byte == '\n') return true;
      if (field_ends_.size() >= kMaxColumns) {
        FailRow(fmt::format("more than {} fields", kMaxColumns));
        return false;
      }
      begin = row_.size();
      closed = false;
    } else if (byte == '\r' && (source_->Peek() == '\n' || source_->Peek() == Source::kEnd)) {
      // This is a CRLF.
    } else if (closed) {
      FailRow("text after a closing quote; double the quotes inside a field");
      return false;
    } else if (byte == '"' && row_.size() == begin) {
      quoted = true;
    } else {
      row_.push_back(static_cast<char>(byte));
    }
  }
}

const Error& CsvReader::error() const {
  VODA_CHECK(error_.has_value());
  return *error_;
}

std::string_view CsvReader::Text(int column) const {
  const int position = positions_[column];
  if (position < 0 || position >= std::ssize(field_ends_)) return {};
  const std::size_t begin = position == 0 ? 0 : field_ends_[position - 1];
  return std::string_view(row_).substr(begin, field_ends_[position] - begin);
}

int CsvReader::Int(int column, int low, int high) {
  const auto value = ParseInt(Text(column));
  if (value && *value >= low && *value <= high) return static_cast<int>(*value);
  Fail(column, fmt::format("is not a whole number from {} to {}", low, high));
  return low;
}

double CsvReader::Number(int column, double low, double high) {
  const auto value = ParseNumber(Text(column));
  if (value && *value >= low && *value <= high) return *value;
  Fail(column, fmt::format("is not a number from {} to {}", low, high));
  return low;
}

void CsvReader::Fail(int column, std::string_view problem) {
  FailRow(fmt::format("column {}: {} {}", column_names_[column], Quoted(Text(column)), problem));
}

void CsvReader::FailRow(std::string_view problem) {
  if (!error_) error_ = Error{fmt::format("{}:{}: {}", name_, line_, problem)};
}

std::string Quoted(std::string_view value) {
  std::string shown = "'";
  for (const char c : value.substr(0, kShownBytes)) {
    if (c >= 0x20 && c < 0x7f) {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  shown += value.size() > kShownBytes ? "…'" : "'";
  return shown;
}

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value + 0.0;  // without negative zero
}

std::optional<std::int64_t> ParseInt(std::string_view text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || stop != end) return std::nullopt;
  return value;
}

bool IsName(std::string_view text, std::size_t longest) {
  return !text.empty() && text.size() <= longest &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

std::string CsvField(std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(value);
  std::string field = "\"";
  for (const char c : value) {
    if (c == '"') field += '"';
    field += c;
  }
  field += '"';
  return field;
}

}  // namespace voda::sim
