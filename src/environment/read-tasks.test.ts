import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readTasks } from "./read-tasks.ts";

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-tasks-"));
});
afterAll(async () => await rm(dir, { recursive: true }));

async function read(content: string | Uint8Array): Promise<readonly unknown[]> {
  const file = path.join(dir, "tasks.jsonl");
  await writeFile(file, content);
  return await readTasks(file);
}

test("a byte order mark at the beginning of the file and U+2028 in a text are read", async () => {
  expect(await read('\uFEFF{"instruction": "a\u2028b"}\r\n{"instruction": "c"}\r\n')).toEqual([
    { instruction: "a\u2028b" },
    { instruction: "c" },
  ]);
});

test.each([
  ['{"instruction": "a", "id": 9007199254740993}', "line 1: id is 9007199254740993, which"],
  ['{"instruction": "a"}\n{"instruction": "a", "x": {"y": [1e400]}}', "line 2: x.y[0] is 1e400"],
  ['{"instruction": "a", "instruction": "b"}', "line 1: instruction occurs twice"],
  ['{"instruction": "\\ud800"}', "line 1: instruction contains half of a surrogate pair"],
  ['{"instruction": "a"}\n\uFEFF{"instruction": "b"}', "line 2: it begins with a byte order mark"],
  ['{"instruction": "a", "x": NaN}', "line 1: "],
])("a task %j is refused with its line", async (text, problem) => {
  await expect(read(text)).rejects.toThrow(`tasks.jsonl, ${problem}`);
});

test.each([
  ["invalid UTF-8", [0x7b, 0x7d, 0x0a, 0xff], "line 2 is not UTF-8"],
  ["UTF-16", [0xff, 0xfe, 0x7b, 0x00], "it is UTF-16, expected UTF-8"],
])("a file with %s is refused", async (_, bytes, problem) => {
  await expect(read(Uint8Array.from(bytes))).rejects.toThrow(problem);
});

test.each([
  ["a line that is not an object", '{"instruction": "a"}\n\n\nnull\n', "line 4 is not an object"],
  [
    "a file that is one list",
    '[{"instruction": "a"}]\n',
    "line 1 is a list, expected one task a line",
  ],
  ["a task without an instruction", '\n{"question": "a"}\n', "line 2 has no instruction"],
])("%s is refused with its line", async (_, text, expected) => {
  await expect(read(text)).rejects.toThrow(expected);
});

test("a task that nests too deeply is refused with its line", async () => {
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  await expect(read(`\n{"instruction": "a", "x": ${deep}}\n`)).rejects.toThrow(
    /tasks\.jsonl, line 2: it nests deeper than 400 levels/,
  );
});
