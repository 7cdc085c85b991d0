import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { readFewShotExamples } from "./read-few-shot-examples.ts";

let file = "";
beforeAll(async () => {
  file = path.join(await mkdtemp(path.join(tmpdir(), "turnwright-examples-")), "examples.jsonl");
});
afterAll(async () => {
  await rm(path.dirname(file), { recursive: true });
});

describe("readFewShotExamples()", () => {
  test("reads one conversation a line, with any separators in it", async () => {
    await writeFile(file, '{"messages_display": "a\\nb\u2028c"}\n{"messages_display": "d"}\r\n');
    expect(await readFewShotExamples(file)).toEqual(["a\nb\u2028c", "d"]);
  });

  test.each([
    ['{"messages_display": "a"}\n{}\n', ':2: expected {"messages_display": "…"}'],
    ['{"messages_display": "a"}\n\n', ":2: "],
    ["null", ':1: expected {"messages_display": "…"}'],
  ])("names the invalid line in %j", async (text, problem) => {
    await writeFile(file, text);
    const reading = readFewShotExamples(file);
    await expect(reading).rejects.toThrow(UsageError);
    await expect(reading).rejects.toThrow(`${file}${problem}`);
  });

  test("names the missing file", async () => {
    await expect(readFewShotExamples(`${file}.absent`)).rejects.toThrow(
      `Cannot read the examples ${file}.absent`,
    );
  });
});
