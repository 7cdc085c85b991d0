import { Command, CommanderError } from "commander";
import { RolloutError, UsageError, describeError } from "../errors.ts";
import { readVersion } from "../composition/version.ts";
import { commandTable } from "./command-table.ts";
import { isInterruption } from "./interrupt.ts";
import { narrowHelp } from "./narrow-help.ts";
import { withoutSecretsOf } from "../secrets/find-secrets.ts";
import { writeError } from "./write-out.ts";

/**
 * Runs the command that the arguments name. Prints invalid input and outages as one line to
 * standard error, and sets `process.exitCode`.
 *
 * @throws any other error: a bug of Turnwright, or of a module that was loaded.
 */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  try {
    await (await createProgram(args)).parseAsync(args, { from: "user" });
  } catch (error) {
    if (error instanceof CommanderError) {
      // Help and version have status 0. All other errors of commander mean invalid input.
      process.exitCode = error.exitCode === 0 ? 0 : 2;
    } else if (isInterruption(error)) {
      // The signal's handler has reported the interruption.
      process.exitCode = 130;
    } else if (error instanceof UsageError || error instanceof RolloutError) {
      writeError(`turnwright: ${describeError(error).replaceAll(/\s*\n\s*/g, " ")}\n`);
      process.exitCode = 2;
    } else throw error;
  }
}

async function createProgram(args: readonly string[]): Promise<Command> {
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
  return program;
}

/** The first calls for new users, in order. */
const firstCalls = [
  "turnwright demo                        a complete run on this machine, without a GPU",
  "turnwright init my-environment         a project of your own",
  "turnwright rollout --help              every setting of a run",
];

/** Prints an error as one line in the form of all our messages. */
function writeComplaint(text: string): void {
  const complaint = text
    .trim()
    .replace(/^error: /, "")
    .replaceAll(/\s*\n\s*/g, " ");
  const repeated = [...complaint.matchAll(/'([^']*)'/g)].map(([, word = ""]) => word);
  writeError(`turnwright: ${withoutSecretsOf(repeated, complaint)} (see --help)\n`);
}

function allCommands(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...allCommands(child)]);
}
