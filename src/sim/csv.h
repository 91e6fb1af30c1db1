// CsvReader: rows of a CSV file with a header, plain or gzip, read as a stream with every size bounded.
//
// Loaders name the columns that they know in a CsvSchema and read fields by position in it. The first error
// is remembered with file, line, column and value: a loader reads all fields of a row without checking
// each, and asks once. After a failure Next() returns false, numbers read as their lower bound and texts as
// they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace voda::sim {

inline constexpr std::int64_t kMaxCsvBytes = std::int64_t{1} << 30;  // uncompressed
inline constexpr std::size_t kMaxCsvRowBytes = 2 << 20;              // a curve of 65,536 sizes fits
inline constexpr std::int64_t kMaxCsvRows = 10'000'000;

struct CsvColumn {
  std::string_view name;  // a literal, since it must outlive the reader
  bool required = true;
};

struct CsvSchema {
  std::vector<CsvColumn> columns;
  bool allow_unknown = false;  // ignore other columns
};

class CsvReader {
 public:
  static Result<CsvReader> Open(const std::string& path, const CsvSchema& schema);
  // `name` stands for the file in messages; `text` must outlive the reader.
  static Result<CsvReader> FromText(std::string name, std::string_view text, const CsvSchema& schema);

  CsvReader(CsvReader&&) noexcept;
  CsvReader& operator=(CsvReader&&) noexcept;
  ~CsvReader();

  // Moves to the next row; returns false at the end and after any failure.
  bool Next();
  bool failed() const { return error_.has_value(); }
  const Error& error() const;

  // `column` is a position in the schema. Views hold until the next call of Next().
  bool Has(int column) const { return !Text(column).empty(); }
  std::string_view Text(int column) const;
  int Int(int column, int low, int high);
  double Number(int column, double low, double high);

  // Records "FILE:LINE: column NAME: 'VALUE' PROBLEM", unless something failed before.
  void Fail(int column, std::string_view problem);
  // Does the same without a column.
  void FailRow(std::string_view problem);

 private:
  class Source;
  CsvReader(std::string name, std::unique_ptr<Source> source);
  std::optional<Error> ReadHeader(const CsvSchema& schema);
  // Reads the fields of the next row that is not empty; returns false at the end or after a failure.
  bool ReadRow();

  std::string name_;
  std::unique_ptr<Source> source_;
  std::vector<std::string_view> column_names_;  // of the schema
  std::vector<int> positions_;                  // where the schema's columns stand in the file; -1 if absent
  std::size_t width_ = 0;                       // number of columns in the file
  std::string row_;                             // unquoted fields, one after the other
  std::vector<std::size_t> field_ends_;
  std::int64_t line_ = 0;  // where the row began; the first is 1
  std::int64_t lines_read_ = 0;
  std::int64_t rows_ = 0;
  std::optional<Error> error_;
};

// Shows a value in a message: quoted, unprintable bytes escaped, cut after 60 bytes.
std::string Quoted(std::string_view value);
// Parses a finite decimal number; the whole text must be one.
std::optional<double> ParseNumber(std::string_view text);
std::optional<std::int64_t> ParseInt(std::string_view text);
// Whether the text can name a job, category or profile: 1 to `longest` visible ASCII characters.
bool IsName(std::string_view text, std::size_t longest = 253);
// Writes a field, quoted if it must be.
std::string CsvField(std::string_view value);

}  // namespace voda::sim
