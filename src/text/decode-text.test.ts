import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { decodeText } from "./decode-text.ts";

test("decodeText() changes no text", () => {
  expect(decodeText(Buffer.from("\uFEFFé😀\u0000"))).toBe("\uFEFFé😀\u0000");
  expect(decodeText(Buffer.from("\uFEFFa"), { mark: "drop" })).toBe("a");
});

test.each([
  ["a line", Buffer.from([0x61, 0x0a, 0xe9]), "line 2 is not UTF-8"],
  ["UTF-16", Buffer.from("\uFEFFé", "utf16le"), "it is UTF-16"],
  // A client that compresses its data without declaring it.
  [
    "gzip",
    gzipSync("{}"),
    "it is compressed (gzip), expected UTF-8, or over HTTP a Content-Encoding",
  ],
  ["zstd", Buffer.from("28b52ffd2002110000", "hex"), "it is compressed (zstd)"],
])("decodeText() gives the reason why bytes are not UTF-8: %s", (_, bytes, message) => {
  expect(() => decodeText(bytes)).toThrow(message);
});
