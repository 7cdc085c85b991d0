import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import type { Task } from "../task.ts";
import { readScript } from "./read-script.ts";

async function write(text: string): Promise<string> {
  const file = path.join(await mkdtemp(path.join(tmpdir(), "turnwright-")), "script.json");
  await writeFile(file, text);
  return file;
}

function task(id: string): Task {
  return { id, environment: "e", split: "s", index: 0, instruction: "i", data: null };
}

describe("readScript()", () => {
  test("reads one list for every task", async () => {
    const lines = await readScript(await write('["a", ""]'));
    expect(lines(task("x"))).toEqual(["a", ""]);
    expect(lines(task("y"))).toEqual(["a", ""]);
  });

  test("reads a leaving line", async () => {
    const farewell = { text: "Bye.", leaves: true };
    const lines = await readScript(await write(JSON.stringify(["a", farewell])));
    expect(lines(task("x"))).toEqual(["a", farewell]);
  });

  test("reads each task's own lines", async () => {
    const lines = await readScript(await write('{"x": ["a"], "__proto__": ["b"], "7": ["c"]}'));
    expect(lines(task("x"))).toEqual(["a"]);
    expect(lines(task("__proto__"))).toEqual(["b"]);
    expect(lines(task("7"))).toEqual(["c"]);
  });

  test("refuses a task that the file does not name", async () => {
    const file = await write('{"a": ["1"], "b": ["1"], "c": ["1"], "d": ["1"]}');
    const lines = await readScript(file);
    expect(() => lines(task("constructor"))).toThrow(
      new UsageError(
        `Cannot play the user of task constructor: ${file} has no lines for it, ` +
          "only for 4 other tasks (a, b, c, …)",
      ),
    );
  });

  test.each([
    ["7", "Cannot read the script FILE: expected a list of lines or an object from task id"],
    ["null", "Cannot read the script FILE: expected a list of lines or an object from task id"],
    ["[]", "Cannot read FILE: expected at least one line"],
    ['["a", 7]', 'Cannot read FILE[1]: expected text, or {"text": …, "leaves": true}'],
    ['["a", {"text": "b"}]', "Cannot read FILE[1]: expected text"],
    ['{"x": "a"}', "Cannot read FILE: x: expected a list of lines"],
    ['{"x": ["a", null]}', "Cannot read FILE: x[1]: expected text"],
    ["[", "Cannot read the script FILE: "],
  ])("refuses %s, naming the position", async (text, complaint) => {
    const file = await write(text);
    await expect(readScript(file)).rejects.toThrow(UsageError);
    await expect(readScript(file)).rejects.toThrow(complaint.replace("FILE", file));
  });

  test("names a file that is absent", async () => {
    await expect(readScript("/absent/script.json")).rejects.toThrow(
      /^Cannot read the script \/absent\/script\.json: ENOENT/,
    );
  });
});
