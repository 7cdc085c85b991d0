import { expect, test } from "vitest";
import { findDisguisingText } from "./disguising-text.ts";

const replace = (from: string, content: string) => ({
  type: "Replace",
  pattern: { String: from },
  content,
});
const sequence = (...normalizers: readonly object[]) => ({ type: "Sequence", normalizers });

test.each([
  ["no normaliser", null],
  ["an empty sequence", sequence()],
  [
    "spaces spelled otherwise, and one put first",
    sequence({ type: "Prepend", prepend: "▁" }, replace(" ", "▁")),
  ],
  ["white space taken from the ends", { type: "Strip", strip_left: true, strip_right: true }],
])("with %s only the literal becomes a token", (_what, normalizer) => {
  expect(findDisguisingText("<tool_call>", normalizer)).toBeUndefined();
});

test.each([
  ["a normal form", { type: "NFC" }],
  ["several", sequence(sequence({ type: "NFKD" }, replace(" ", "▁")), { type: "NFC" })],
])("with %s text beyond ASCII may become a token", (_what, normalizer) => {
  expect(findDisguisingText("<tool_call>", normalizer)).toBe("beyond-ascii");
  expect(findDisguisingText("東京é", normalizer)).toBe("beyond-ascii");
});

test("without composition to ASCII, only text beyond ASCII may become a literal beyond ASCII", () => {
  expect(findDisguisingText("<ﬁ>", { type: "NFC" })).toBe("beyond-ascii");
});

test.each([
  ["lower case", { type: "Lowercase" }],
  ["a compiled table", sequence({ type: "NFC" }, { type: "Precompiled" })],
  ["characters of its own put in", replace("[", "<")],
  ["such in another form", sequence(replace("[", "＜"), { type: "NFKC" })],
  ["its own space spelled otherwise", replace(" ", "▁"), "<tool call>"],
  ["its own space put first", { type: "Prepend", prepend: "▁" }, "▁tool"],
  ["white space taken from its own ends", { type: "Strip" }, "<tool_call> "],
  ["its own wide signs made ASCII", { type: "NFKC" }, "＜x＞"],
  ["its own ligature taken apart", sequence({ type: "NFKD" }, replace(" ", "▁")), "<ﬁ>"],
  ["its own sign of Kelvin made a K", { type: "NFC" }, "[K\u212a]"],
  ["its own letters made small beside a bracket", { type: "Lowercase" }, "[TOOL]"],
  ["its own capitals kept", sequence({ type: "NFD" }, { type: "StripAccents" }), "TÉ"],
  ["lower case of a small word", { type: "Lowercase" }, "tool"],
])(
  "with %s all text but words may become a token",
  (_what, normalizer, content = "<tool_call>") => {
    expect(findDisguisingText(content, normalizer)).toBe("beyond-words");
  },
);

test.each([
  ["characters taken out", replace("x", "")],
  ["nothing spelled otherwise", replace("", "▁")],
  ["a pattern", { type: "Replace", pattern: { Regex: "x+" }, content: "▁" }],
  ["its own letters made small", { type: "Lowercase" }, "TOOL"],
  ["its own accent taken off", sequence({ type: "NFD" }, { type: "StripAccents" }), "été"],
  ["its own wide letters made ASCII", { type: "NFKC" }, "ｔｏｏｌ"],
  ["its own letters folded by a table", { type: "Precompiled" }, "Straße"],
  ["its own white space taken off", sequence({ type: "Strip" }, { type: "NFC" }), " tool"],
  ["its own bracket spelled as a letter", replace("<", "x"), "<tool"],
  ["an unknown type", sequence({ type: "NFC" }, { type: "Other" }), "<tool_call>"],
])("with %s any text may become a token", (_what, normalizer, content = "<tool_call>") => {
  expect(findDisguisingText(content, normalizer)).toBe("any");
});
