#!/usr/bin/env node
import module from "node:module";
import { Command, CommanderError } from "commander";
import { RolloutError, UsageError, describeError } from "../errors.ts";
import { passOverFloating } from "../internal/pass-over-floating.ts";
import { readVersion } from "../setup/version.ts";
import { commandTable } from "./command-table.ts";
import { narrowHelp } from "./narrow-help.ts";
import { hideSecretsIn, writeError } from "./write-out.ts";

async function main(args: readonly string[]): Promise<void> {
  const program = new Command("turnwright")
    .description("Token-exact, multi-turn agent rollouts for reinforcement learning")
    .version(await readVersion())
    .configureHelp({
      ...narrowHelp,
      subcommandTerm: (command) => `${command.name()} ${command.usage()}`,
    });
  const [wanted] = args.filter((arg) => arg !== "help");
  program.addHelpText("after", `\nExamples:\n${firstCalls.map((call) => `  ${call}\n`).join("")}`);
  for (const entry of commandTable) {
    const { name, summary, group, examples = [], arguments: given = [], load } = entry;
    const command = program.command(name).summary(summary).helpGroup(group);
    if (examples.length > 0) {
      const title = examples.length === 1 ? "Example" : "Examples";
      command.addHelpText("after", `\n${title}:\n  ${examples.join("\n  ")}`);
    }
    for (const [spelling, help] of given) command.argument(spelling, help);
    if (name === wanted) (await load())(command);
  }
  for (const command of [program, ...allCommands(program)]) {
    command.exitOverride().configureOutput({ outputError: writeComplaint });
  }
  await program.parseAsync(args, { from: "user" });
}

/** Where to begin, in this order. */
const firstCalls = [
  "turnwright demo                        the whole way, on this machine alone",
  "turnwright init my-environment         a project of your own",
  "turnwright rollout --help              every setting of a run",
];

/** One line, in the form of all our complaints. */
function writeComplaint(text: string): void {
  const complaint = text
    .trim()
    .replace(/^error: /, "")
    .replaceAll(/\s*\n\s*/g, " ");
  writeError(`turnwright: ${complaint} (see --help)\n`);
}

function allCommands(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...allCommands(child)]);
}

// Whoever reads our output may have seen enough: `… | head`. The status is that of SIGPIPE.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(141);
  throw error;
});

// Where Node can keep what it compiled (22.1 and newer), the next start compiles nothing.
(module as { enableCompileCache?: () => unknown }).enableCompileCache?.();

// Whatever a command plays of somebody else's, what that forgets to await ends nothing.
const floating = passOverFloating((line) => writeError(`turnwright: ${line}\n`));

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof CommanderError) {
    // Help and version end with 0; everything else that commander refuses is bad input.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else if (error instanceof UsageError || error instanceof RolloutError) {
    writeError(`turnwright: ${describeError(error).replaceAll(/\s*\n\s*/g, " ")}\n`);
    process.exitCode = 2;
  } else {
    hideSecretsIn(error);
    // Node takes what a module throws for a promise that nobody awaits, and ours ends the process.
    floating[Symbol.dispose]();
    throw error;
  }
}
