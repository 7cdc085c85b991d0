import { expect, test } from "vitest";
import { utf8Bytes } from "./utf8-bytes.ts";

test.each(["", "a", "äöü", "🦊🦊", "\ud83e alone", "x".repeat(100_000), "ł".repeat(70_000)])(
  "gives the bytes that Buffer.from() gives",
  (text) => {
    expect(utf8Bytes(text).equals(Buffer.from(text))).toBe(true);
  },
);
