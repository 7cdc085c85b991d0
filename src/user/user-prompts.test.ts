import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { ownUserPrompts } from "./own-user-prompts.ts";
import { readUserPrompts } from "./read-user-prompts.ts";
import { fillInstruction, fillPrompt } from "./user-prompts.ts";

async function write(name: string, text: string): Promise<string> {
  const file = path.join(await mkdtemp(path.join(tmpdir(), "turnwright-")), name);
  await writeFile(file, text);
  return file;
}

const both = { none: "play", with: "play\nDO THIS\nnow" };

describe("readUserPrompts()", () => {
  test("reads a bundle's texts, and uses our own wording for judges if it has none", async () => {
    const file = await write("p.json", JSON.stringify({ llm: both, react: both }));
    const read = { withInstruction: "play\n{instruction}\nnow", withoutInstruction: "play" };
    expect(await readUserPrompts(file)).toEqual({
      llm: read,
      react: read,
      verify: ownUserPrompts.verify,
      reflect: ownUserPrompts.reflect,
    });
  });

  test("reads judge prompts if the file has them", async () => {
    const verify = "{transcript} {response}?";
    const file = await write(
      "p.json",
      JSON.stringify({ llm: both, react: both, verify, reflect: `${verify}!` }),
    );
    expect(await readUserPrompts(file)).toMatchObject({ verify, reflect: `${verify}!` });
  });

  test.each([
    ["[]", ": expected an object"],
    [JSON.stringify({ llm: both }), ": react: expected an object"],
    [JSON.stringify({ llm: { with: "DO THIS" }, react: both }), ": llm.none: expected text"],
    [
      JSON.stringify({ llm: both, react: { ...both, with: "x" } }),
      ": react.with: DO THIS occurs 0 times, expected once, as the placeholder of the instruction",
    ],
    [
      JSON.stringify({ llm: both, react: both, verify: "{response}" }),
      ": verify: expected {transcript} in it",
    ],
  ])("refuses %s, naming the member", async (text, complaint) => {
    const file = await write("p.json", text);
    await expect(readUserPrompts(file)).rejects.toThrow(
      new UsageError(`Cannot read ${file}${complaint}`),
    );
  });

  test("names a file that is absent or not JSON", async () => {
    await expect(readUserPrompts("/absent/p.json")).rejects.toThrow(
      /^Cannot read the user prompts \/absent\/p\.json: ENOENT/,
    );
    const file = await write("p.json", "{");
    await expect(readUserPrompts(file)).rejects.toThrow(`Cannot read the user prompts ${file}: `);
  });

  test("reads the prompts from the simulators' Python source", async () => {
    const file = await write("user.py", pythonSource);
    expect(await readUserPrompts(file)).toEqual({
      llm: {
        withInstruction: 'Play.\n"{instruction}"\nRules',
        withoutInstruction: "Play.Rules",
      },
      react: { withInstruction: "Think: {instruction};\nOK", withoutInstruction: "Think\nOK" },
      verify: "{transcript}\n{response}: good?",
      reflect: "{response}, {transcript}: better?",
    });
  });

  test.each([
    ["def verify", "def check", 'expected "def verify" in it'],
    ["instruction + ", "instructions + ", '("…" + instruction + "…") in it'],
    ["{response}: good?", "{answer}: good?", "its f-string has {transcript}, {answer}"],
    ['f"""{transcript}', '"""{transcript}', 'expected one f"""…""" in it'],
    ["Rules", "\\x20Rules", "and no backslash"],
  ])("refuses a source with %j written %j", async (from, to, complaint) => {
    const file = await write("user.py", pythonSource.replace(from, to));
    await expect(readUserPrompts(file)).rejects.toThrow(complaint);
  });
});

const pythonSource = `
class LLMUserSimulationEnv(Base):
    def build_system_prompt(self, instruction):
        shown = ("\\n\\"" + instruction + "\\"\\n") if instruction is not None else ""
        return f"""Play.{instruction_display}Rules"""

class ReactUserSimulationEnv(LLMUserSimulationEnv):
    def build_system_prompt(self, instruction):
        shown = (
            (": " + instruction + ";")
        )
        return f"""Think{instruction_display}
OK"""

def verify(response, messages):
    prompt = f"""{transcript}
{response}: good?"""

def reflect(response, messages):
    prompt = f"""{response}, {transcript}: better?"""
`;

test("`fillPrompt()` fills in one pass and keeps unknown placeholders", () => {
  expect(fillPrompt("{a} {b} {c} {a}", { a: "{b} $&", b: "2" })).toBe("{b} $& 2 {c} {b} $&");
});

test("the default prompts have all required placeholders", () => {
  for (const prompt of [ownUserPrompts.llm, ownUserPrompts.react]) {
    expect(fillInstruction(prompt, "Buy tea.")).toContain("Buy tea.");
    expect(fillInstruction(prompt, null)).not.toContain("{");
    expect(prompt.withoutInstruction).toContain("###STOP###");
  }
  expect(ownUserPrompts.react.withoutInstruction).toMatch(/Thought:.*User Response:/);
  for (const prompt of [ownUserPrompts.verify, ownUserPrompts.reflect]) {
    expect(fillPrompt(prompt, { transcript: "T", response: "R" })).not.toMatch(/[{}]/);
  }
});
