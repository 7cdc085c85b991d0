import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { JsonlJournal } from "./jsonl-journal.ts";
import { readJsonl } from "./read-jsonl.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

async function valuesOf(file: string): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const value of readJsonl(file)) values.push(value);
  return values;
}

describe("JsonlJournal", () => {
  test("keeps the order of lines that are appended at once", async () => {
    const file = path.join(dir, "a.jsonl");
    {
      await using journal = await JsonlJournal.open(file);
      await Promise.all(Array.from({ length: 100 }, (_, index) => journal.append({ index })));
      await journal.append({ index: 100 });
    }
    expect(await valuesOf(file)).toEqual(Array.from({ length: 101 }, (_, index) => ({ index })));
  });

  test("a line is on the disk once its append has resolved", async () => {
    const file = path.join(dir, "a.jsonl");
    await using journal = await JsonlJournal.open(file);
    await journal.append({ a: 1 });
    expect(await readFile(file, "utf8")).toBe('{"a":1}\n');
  });

  test.each([
    ['{"a":1}\n{"a":2}\n{"a":', '{"a":1}\n{"a":2}\n{"a":3}\n'],
    ['{"a":', '{"a":3}\n'],
    ["", '{"a":3}\n'],
    [`{"a":"${"x".repeat(200_000)}`, '{"a":3}\n'],
  ])("opening a file cuts off its torn last line", async (before, after) => {
    const file = path.join(dir, "a.jsonl");
    await writeFile(file, before);
    {
      await using journal = await JsonlJournal.open(file);
      await journal.append({ a: 3 });
    }
    expect(await readFile(file, "utf8")).toBe(after);
  });

  test("says which file cannot be opened", async () => {
    await expect(JsonlJournal.open(path.join(dir, "no", "a.jsonl"))).rejects.toThrow(
      `Cannot open ${path.join(dir, "no", "a.jsonl")} for writing`,
    );
  });
});

describe("readJsonl()", () => {
  test("passes over a torn last line, and refuses one in the middle", async () => {
    const file = path.join(dir, "a.jsonl");
    await writeFile(file, '{"a":1}\n{"a"');
    expect(await valuesOf(file)).toEqual([{ a: 1 }]);
    await writeFile(file, '{"a"\n{"a":1}\n');
    await expect(valuesOf(file)).rejects.toThrow(SyntaxError);
    expect(await valuesOf(path.join(dir, "none.jsonl"))).toEqual([]);
  });
});
