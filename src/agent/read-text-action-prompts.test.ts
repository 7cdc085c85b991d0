import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { readTextActionPrompts } from "./read-text-action-prompts.ts";

const tool =
  '[{"type": "function", "function": {"name": "t", "description": "d \\u00e9", "parameters": {}}}]';

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-prompts-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function fileWith(text: string): Promise<string> {
  const file = path.join(scratch, "agent-prompts.json");
  await writeFile(file, text);
  return file;
}

describe("readTextActionPrompts()", () => {
  test("removes the placeholders of policy and tools from each prompt", async () => {
    const prompts = { act: `WIKI é\nA${tool}B`, react: `WIKI é${tool}` };
    expect(await readTextActionPrompts(await fileWith(JSON.stringify(prompts)))).toEqual({
      act: { beforeTools: "\nA", afterTools: "B" },
      react: { beforeTools: "", afterTools: "" },
    });
  });

  test.each([
    ["null", "act: expected text"],
    [JSON.stringify({ act: `WIKI é${tool}`, react: 1 }), "react: expected text"],
    [JSON.stringify({ act: `Wiki${tool}` }), "act: expected it to start with"],
    [JSON.stringify({ act: "WIKI é" }), "act: expected it to start with"],
    [JSON.stringify({ act: `WIKI é${tool}${tool}` }), "act: expected it to start with"],
    ["{", "Cannot read the agent prompts"],
  ])("names the problem of %.30s", async (text, problem) => {
    const reading = readTextActionPrompts(await fileWith(text));
    await expect(reading).rejects.toThrow(UsageError);
    await expect(reading).rejects.toThrow(problem);
  });

  test("names the missing file", async () => {
    const file = path.join(scratch, "absent.json");
    await expect(readTextActionPrompts(file)).rejects.toThrow(
      `Cannot read the agent prompts ${file}`,
    );
  });
});
