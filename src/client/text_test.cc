#include "client/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "support/check.h"

namespace voda {
namespace {

TEST(Text, EscapeSequencesAreMadeHarmless) {
  EXPECT_EQ(Printable("a\x1b[31mb\x07\n\tc\x7f"), "a?[31mb?  c?");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m"),
            "?31m");  // the C1 form of ESC [
  EXPECT_EQ(Printable("caf\u00e9 \u2192 \u4f60"), "caf\u00e9 \u2192 \u4f60");
  EXPECT_EQ(Printable("caf\u00e9 \u2192", true), "caf? ?");
  EXPECT_EQ(Printable("a\u200Bb\u0301\U0001F600"), "a?b??");  // widths that terminals disagree on
  EXPECT_EQ(Printable("\xFF\xC3"), "??");
}

TEST(Text, CutsAndPadsByCells) {
  EXPECT_EQ(CellWidth("\u4f60a"), 3);
  EXPECT_EQ(Cut("abcdef", 4), "abc~");
  EXPECT_EQ(Cut("abcd", 4), "abcd");
  EXPECT_EQ(Cut("\u4f60\u597d", 3), "\u4f60~");
  EXPECT_EQ(Cut("\u4f60\u597d", 2), "~");
  EXPECT_EQ(Cut("abc", 0), "");
  EXPECT_EQ(Fit("ab", 4), "ab  ");
  EXPECT_EQ(PadRight("abcdef", 4), "abcdef");
}

TEST(Text, AnyBytesFitTheWidth) {
  testing::Check(
      [] {
        const auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
        const int width = *rc::gen::inRange(0, 20);
        const std::string shown = Printable(bytes);
        RC_ASSERT(CellWidth(Cut(shown, width)) <= width);
        RC_ASSERT(CellWidth(Fit(shown, width)) == width);
        for (const char c : shown) RC_ASSERT(static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
      },
      1000);
}

TEST(Text, Sizes) {
  EXPECT_EQ(ByteSize(512), "512 B");
  EXPECT_EQ(ByteSize(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
  EXPECT_EQ(Counted(1, "GPU"), "1 GPU");
  EXPECT_EQ(Counted(0, "GPU"), "0 GPUs");
}

}  // namespace
}  // namespace voda
