import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { commandTable } from "../../src/cli/command-table.ts";
import { narrowHelp } from "../../src/cli/narrow-help.ts";
import { callCli } from "../support/call-cli.ts";

describe("help", () => {
  test("lists every command once, in groups, and the first steps", async () => {
    const { status, stdout } = await callCli(["--help"]);
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

  test("groups the settings of rollout, the ten most used first", async () => {
    const { stdout } = await callCli(["rollout", "--help"]);
    const headings = stdout.split("\n").filter((line) => /^[A-Z].*:$/.test(line));
    expect(headings).toEqual([
      "Most used:",
      "Model:",
      "Engine:",
      "Environment:",
      "User:",
      "Sampling:",
      "Groups:",
      "Policy:",
      "Limits:",
      "Workers:",
      "Teacher:",
      "Output:",
      "Options:",
      "Examples:",
    ]);
    const [, used = ""] = /Most used:\n([^]*?)\n\n/.exec(stdout)!;
    expect(used.match(/^ {2}--/gm)).toHaveLength(10);
  });

  const examples = commandTable.flatMap(({ name, examples = [] }) =>
    examples.map((example): [string, string] => [name, example]),
  );
  test.each(examples)("%s shows a call with existing flags: %s", async (name, example) => {
    const { stdout } = await callCli([name, "--help"]);
    const [options, shown] = stdout.split(/\nExamples?:\n/) as [string, string];
    expect(shown).toContain(`  ${example}\n`);
    expect(example.startsWith(`turnwright ${name} `)).toBe(true);
    for (const [, flag] of example.matchAll(/ (--[a-z-]+)/g))
      expect(options).toContain(`${flag!} `);
  });
});

test.each(commandTable.map((entry) => [entry.name, entry] as const))(
  "%s lets the terminal's width wrap its description",
  async (name, { load }) => {
    const command = new Command(name);
    (await load())(command);
    for (const description of allDescriptions(command)) {
      // Paragraphs are parted by an empty line; only lines that are set in break by themselves.
      expect(description).not.toMatch(/[^\n]\n(?![\n ])/);
    }
  },
);

test.each(commandTable.map((entry) => [entry.name, entry] as const))(
  "%s takes each of its arguments once",
  async (name, { arguments: given = [], load }) => {
    const command = new Command(name);
    for (const [spelling, help] of given) command.argument(spelling, help);
    (await load())(command);
    const names = command.registeredArguments.map((argument) => argument.name());
    expect(names).toEqual([...new Set(names)]);
  },
);

describe.each([40, 60, 80, 120])("in a terminal of %i columns", (width) => {
  test.each(commandTable.map((entry) => [entry.name, entry] as const))(
    "the help of %s stays inside, and lays no word on top of another",
    async (name, { load }) => {
      const program = new Command("turnwright").configureHelp({ ...narrowHelp, helpWidth: width });
      const command = program.command(name);
      (await load())(command);
      for (const one of [command, ...command.commands]) {
        const lines = one.helpInformation().split("\n");
        // A name longer than a line is not broken.
        const isTerm = (line: string): boolean => /^ {2}\S/.test(line) && !/\S {2,}\S/.test(line);
        const long = lines.filter(
          (line) => line.length > width && !isTerm(line) && !line.startsWith("Usage: "),
        );
        expect(long.filter((line) => line.trim().includes(" "))).toEqual([]);
      }
    },
  );
});

function allDescriptions(command: Command): string[] {
  return [command.description(), ...command.commands.flatMap(allDescriptions)];
}
