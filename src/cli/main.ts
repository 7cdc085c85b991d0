#!/usr/bin/env node
import { Command, CommanderError } from "commander";
import { RolloutError, UsageError, describeError } from "../errors.ts";
import { addCompareCommand } from "./commands/compare.ts";
import { addDemoCommand } from "./commands/demo.ts";
import { addEnvCommand } from "./commands/env.ts";
import { addEnvImportCommands } from "./commands/env-import.ts";
import { addEvalCommands } from "./commands/eval.ts";
import { addEvalMetricsCommand } from "./commands/eval-metrics.ts";
import { addIdentifyErrorsCommand } from "./commands/identify-errors.ts";
import { addParseCommand } from "./commands/parse.ts";
import { addReasonCommand } from "./commands/reason.ts";
import { addRolloutCommand } from "./commands/rollout.ts";
import { addShowCommand } from "./commands/show.ts";
import { addTemplateCommands } from "./commands/template.ts";
import { addVerifyCommand } from "./commands/verify.ts";
import { readVersion } from "./version.ts";

async function main(): Promise<void> {
  const program = new Command("turnwright")
    .description("Token-exact, multi-turn agent rollouts for reinforcement learning")
    .version(await readVersion())
    .exitOverride();
  addRolloutCommand(program);
  addDemoCommand(program);
  addEvalCommands(program);
  addEvalMetricsCommand(program);
  addShowCommand(program);
  addCompareCommand(program);
  addIdentifyErrorsCommand(program);
  addVerifyCommand(program);
  addEnvImportCommands(addEnvCommand(program));
  addParseCommand(program);
  addReasonCommand(program);
  addTemplateCommands(program);
  for (const command of [program, ...allCommands(program)]) {
    command.exitOverride().configureOutput({ outputError: writeComplaint });
  }
  await program.parseAsync();
}

/** One line, in the form of all our complaints. */
function writeComplaint(text: string, write: (text: string) => void): void {
  const complaint = text
    .trim()
    .replace(/^error: /, "")
    .replaceAll(/\s*\n\s*/g, " ");
  write(`turnwright: ${complaint} (see --help)\n`);
}

function allCommands(command: Command): Command[] {
  return command.commands.flatMap((child) => [child, ...allCommands(child)]);
}

// Whoever reads our output may have seen enough: `… | head`. The status is that of SIGPIPE.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(141);
  throw error;
});

try {
  await main();
} catch (error) {
  if (error instanceof CommanderError) {
    // Help and version end with 0; everything else that commander refuses is bad input.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else if (error instanceof UsageError || error instanceof RolloutError) {
    process.stderr.write(`turnwright: ${describeError(error).replaceAll(/\s*\n\s*/g, " ")}\n`);
    process.exitCode = 2;
  } else {
    throw error;
  }
}
