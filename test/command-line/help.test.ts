import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { commandTable } from "../../src/cli/command-table.ts";
import { runCli } from "../support/run-cli.ts";

describe("help", () => {
  test("lists every command once, in groups, and where to begin", async () => {
    const { status, stdout } = await runCli(["--help"]);
    expect(status).toBe(0);
    const lines = stdout.split("\n");
    const groups = lines.filter((line) => /^[A-Z].*:$/.test(line));
    expect(groups).toEqual([
      "Options:",
      ...new Set(commandTable.map(({ group }) => group)),
      "Commands:",
      "Examples:",
    ]);
    for (const { name } of commandTable) {
      const own = lines.filter((line) => new RegExp(`^  ${name} \\[options\\]`).test(line));
      expect(own.length, name).toBe(1);
    }
  });

  const examples = commandTable.flatMap(({ name, examples = [] }) =>
    examples.map((example): [string, string] => [name, example]),
  );
  test.each(examples)("%s shows a call whose flags there are: %s", async (name, example) => {
    const { stdout } = await runCli([name, "--help"]);
    const [options, shown] = stdout.split(/\nExamples?:\n/) as [string, string];
    expect(shown).toContain(`  ${example}\n`);
    expect(example.startsWith(`turnwright ${name} `)).toBe(true);
    for (const [, flag] of example.matchAll(/ (--[a-z-]+)/g))
      expect(options).toContain(`${flag!} `);
  });
});

test.each(commandTable.map((entry) => [entry.name, entry] as const))(
  "%s leaves it to the terminal's width where its description breaks",
  async (name, { load }) => {
    const command = new Command(name);
    (await load())(command);
    for (const description of allDescriptions(command)) {
      // Paragraphs are parted by an empty line; only lines that are set in break by themselves.
      expect(description).not.toMatch(/[^\n]\n(?![\n ])/);
    }
  },
);

function allDescriptions(command: Command): string[] {
  return [command.description(), ...command.commands.flatMap(allDescriptions)];
}
