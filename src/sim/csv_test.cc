#include "sim/csv.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/test_data.h"

namespace voda::sim {
namespace {

CsvSchema Ab() {
  return {.columns = {{"a"}, {"b"}, {"c", false}}, .allow_unknown = false};
}

std::string ErrorOf(std::string_view text, const CsvSchema& schema = Ab()) {
  Result<CsvReader> reader = CsvReader::FromText("f.csv", text, schema);
  if (!reader) return reader.error().message;
  while (reader->Next()) {
  }
  return reader->failed() ? reader->error().message : "";
}

TEST(Csv, ReadsColumnsByNameInAnyOrder) {
  Result<CsvReader> reader = CsvReader::FromText("f.csv", "b,a\n2,x\n\n-3,\"y,\"\"z\"\"\n\"", Ab());
  ASSERT_TRUE(reader);
  ASSERT_TRUE(reader->Next());
  EXPECT_EQ(reader->Text(0), "x");
  EXPECT_EQ(reader->Int(1, -10, 10), 2);
  EXPECT_FALSE(reader->Has(2));
  ASSERT_TRUE(reader->Next());
  EXPECT_EQ(reader->Text(0), "y,\"z\"\n") << "quotes hold commas, quotes and line ends";
}

TEST(Csv, ToleratesCrlfByteOrderMarkAndMissingLastLineEnd) {
  Result<CsvReader> reader = CsvReader::FromText("f.csv",
                                                 "\xEF\xBB\xBF"
                                                 "a,b\r\n1,\"2\"\r\n3,4",
                                                 Ab());
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_TRUE(reader->Next());
  EXPECT_EQ(reader->Text(1), "2");
  ASSERT_TRUE(reader->Next());
  EXPECT_EQ(reader->Text(1), "4");
  EXPECT_FALSE(reader->Next());
  EXPECT_FALSE(reader->failed());
}

TEST(Csv, RefusesWhatIsNotATable) {
  EXPECT_EQ(ErrorOf(""), "f.csv:1: is empty; the first line names the columns: a,b");
  EXPECT_EQ(ErrorOf("a,b,b\n"), "f.csv:1: column 'b' appears twice; keep one");
  EXPECT_EQ(ErrorOf("a\n"), "f.csv:1: column b is missing; required are a,b");
  EXPECT_EQ(ErrorOf("a,b,x\n"), "f.csv:1: unknown column 'x'; known are a, b, c");
  EXPECT_EQ(ErrorOf("a,b\n1,2\n1,2,3\n"), "f.csv:3: 3 fields where the header has 2");
  EXPECT_EQ(ErrorOf("a,b\n1\n"), "f.csv:2: 1 fields where the header has 2");
  EXPECT_EQ(ErrorOf("a,b\n1,\"2\n"), "f.csv:2: a quote is opened and never closed");
  EXPECT_EQ(ErrorOf("a,b\n\"1\"x,2\n"),
            "f.csv:2: text after a closing quote; double the quotes inside a field");
  EXPECT_EQ(ErrorOf("a,b,x\n1,2,3\n", {.columns = {{"a"}}, .allow_unknown = true}), "");
  EXPECT_EQ(ErrorOf("a,b\n\"1\n1\",2\n\n7\n"), "f.csv:5: 1 fields where the header has 2")
      << "lines are physical";
}

TEST(Csv, BoundsTheLengthOfARowAndTheNumberOfFields) {
  EXPECT_NE(ErrorOf("a,b\n" + std::string(kMaxCsvRowBytes + 1, 'x')).find("f.csv:2: longer than"),
            std::string::npos);
  EXPECT_NE(ErrorOf("a,b\n" + std::string(5000, ',')).find("more than 1024 fields"), std::string::npos);
}

TEST(Csv, NumbersNameColumnValueAndRange) {
  for (const char* bad : {"", "x", "1.5", "0", "11", " 1", "1 ", "99999999999999999999"}) {
    const std::string text = std::string("a,b\n\"") + bad + "\",2\n";
    Result<CsvReader> reader = CsvReader::FromText("f.csv", text, Ab());
    ASSERT_TRUE(reader && reader->Next());
    reader->Int(0, 1, 10);
    ASSERT_TRUE(reader->failed()) << bad;
    EXPECT_EQ(reader->error().message,
              std::string("f.csv:2: column a: '") + bad + "' is not a whole number from 1 to 10");
    EXPECT_FALSE(reader->Next());
  }
  for (const char* bad : {"nan", "inf", "-1", "1e999", "0x10", "1,"}) {
    const std::string text = std::string("a,b\n\"") + bad + "\",2\n";
    Result<CsvReader> reader = CsvReader::FromText("f.csv", text, Ab());
    ASSERT_TRUE(reader && reader->Next());
    reader->Number(0, 0, 100);
    EXPECT_TRUE(reader->failed()) << bad;
  }
}

TEST(Csv, KeepsTheFirstFailureOnly) {
  Result<CsvReader> reader = CsvReader::FromText("f.csv", "a,b\nx,y\n", Ab());
  ASSERT_TRUE(reader && reader->Next());
  reader->Int(0, 1, 2);
  reader->Int(1, 1, 2);
  EXPECT_NE(reader->error().message.find("column a"), std::string::npos);
}

TEST(Csv, ShowsUnprintableBytesEscapedAndLongValuesCut) {
  EXPECT_EQ(Quoted("a\n\xff"), "'a\\x0a\\xff'");
  EXPECT_EQ(Quoted(std::string(61, 'x')), "'" + std::string(60, 'x') + "…'");
}

TEST(Csv, ReadsGzipAndPlainFilesAlike) {
  const TempDir dir;
  const std::string plain = dir.Write("p.csv", "a,b\n1,2\n");
  const std::string packed = dir.Path("p.csv.gz");
  gzFile out = gzopen(packed.c_str(), "wb");
  gzputs(out, "a,b\n1,2\n");
  gzclose(out);
  for (const std::string& path : {plain, packed}) {
    Result<CsvReader> reader = CsvReader::Open(path, Ab());
    ASSERT_TRUE(reader) << reader.error().message;
    ASSERT_TRUE(reader->Next());
    EXPECT_EQ(reader->Int(1, 0, 9), 2);
    EXPECT_FALSE(reader->Next());
    EXPECT_FALSE(reader->failed());
  }
}

TEST(Csv, SaysWhatIsWrongWithAFile) {
  const TempDir dir;
  EXPECT_NE(
      CsvReader::Open(dir.Path("none.csv"), Ab()).error().message.find("cannot be opened: No such file"),
      std::string::npos);
  EXPECT_NE(CsvReader::Open(dir.Path("."), Ab()).error().message.find("is a directory"), std::string::npos);

  const std::string whole = dir.Path("w.gz");
  gzFile out = gzopen(whole.c_str(), "wb");
  gzputs(out, "a,b\n");
  for (int i = 0; i < 50000; ++i) gzprintf(out, "%d,%d\n", i, i * 7919 % 10007);
  gzclose(out);
  std::filesystem::resize_file(whole, std::filesystem::file_size(whole) / 2);
  Result<CsvReader> cut = CsvReader::Open(whole, Ab());
  ASSERT_TRUE(cut);
  while (cut->Next()) {
  }
  ASSERT_TRUE(cut->failed()) << "half a file is not a shorter file";
  EXPECT_NE(cut->error().message.find("damaged gzip"), std::string::npos) << cut->error().message;
}

TEST(Csv, StopsADecompressionBomb) {
  const TempDir dir;
  const std::string path = dir.Path("bomb.gz");
  const std::string member = dir.Path("member.gz");
  gzFile out = gzopen(member.c_str(), "wb");
  const std::string block(16 << 20, '\n');  // rows are short, so only the total can stop it
  gzwrite(out, block.data(), static_cast<unsigned>(block.size()));
  gzclose(out);
  std::ifstream packed(member, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(packed)), std::istreambuf_iterator<char>());
  std::ofstream bomb(path, std::ios::binary);
  gzFile header = gzopen(dir.Path("header.gz").c_str(), "wb");
  gzputs(header, "a,b\n");
  gzclose(header);
  bomb << std::ifstream(dir.Path("header.gz"), std::ios::binary).rdbuf();
  for (std::int64_t i = 0; i < kMaxCsvBytes / (16 << 20); ++i)
    bomb << bytes;  // concatenated gzip files are one file
  bomb.close();
  ASSERT_LT(std::filesystem::file_size(path), std::uintmax_t{4} << 20);
  Result<CsvReader> reader = CsvReader::Open(path, Ab());
  ASSERT_TRUE(reader);
  EXPECT_FALSE(reader->Next());
  ASSERT_TRUE(reader->failed());
  EXPECT_NE(reader->error().message.find("bytes uncompressed"), std::string::npos);
}

TEST(Csv, WrittenFieldsReadBack) {
  for (const std::string& value :
       {std::string("plain"), std::string("a,b"), std::string("\"q\""), std::string("x\ny")}) {
    const std::string text = "a,b\n" + CsvField(value) + ",1\n";
    Result<CsvReader> reader = CsvReader::FromText("f", text, Ab());
    ASSERT_TRUE(reader && reader->Next());
    EXPECT_EQ(reader->Text(0), value);
  }
}

}  // namespace
}  // namespace voda::sim
