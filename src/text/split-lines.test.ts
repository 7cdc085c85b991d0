import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { splitLines } from "./split-lines.ts";

async function linesOf(...chunks: (Uint8Array | string)[]): Promise<string[]> {
  const lines: string[] = [];
  async function* stream() {
    yield* chunks;
  }
  for await (const line of splitLines(stream())) lines.push(line);
  return lines;
}

describe("splitLines()", () => {
  test("ends lines at line feeds alone", async () => {
    expect(await linesOf("a\u2028b\u2029c\u0085d\re\n\nf\r\n")).toEqual([
      "a\u2028b\u2029c\u0085d\re",
      "",
      "f",
    ]);
  });

  test("yields the rest after the last line feed", async () => {
    expect(await linesOf("a\nb")).toEqual(["a", "b"]);
    expect(await linesOf("")).toEqual([]);
  });

  test("gives the same lines however the bytes are cut", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: "grapheme" }).map((text) => text.replaceAll(/[\r\n]/g, ""))),
        fc.array(fc.nat({ max: 8 })),
        async (lines, cuts) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
          const chunks: Uint8Array[] = [];
          let start = 0;
          for (const cut of cuts) {
            chunks.push(bytes.subarray(start, start + cut));
            start += cut;
          }
          chunks.push(bytes.subarray(start));
          expect(await linesOf(...chunks)).toEqual(lines);
        },
      ),
    );
  });

  test("refuses a line that is not UTF-8 by its number, and bears one that was cut off", async () => {
    const wrong = [Buffer.from("a\nb"), Buffer.from([0xed, 0xa0, 0x80, 0x0a, 0x63])];
    await expect(linesOf(...wrong)).rejects.toThrow(
      "Cannot read the input: line 2 is not UTF-8, expected UTF-8",
    );
    expect(await linesOf("a\n", Buffer.from([0x62, 0xe2, 0x82]))).toEqual(["a", "b\uFFFD"]);
  });
});
