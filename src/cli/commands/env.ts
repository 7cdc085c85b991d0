import { type Command, InvalidArgumentError, Option } from "commander";
import { environmentNames, isTauName } from "../../composition/environment/environment-names.ts";
import { findBundle, loadEnvironment } from "../../composition/environment/environments.ts";
import { checkNumber, count } from "../../composition/config/setting.ts";
import { environmentOf, type EnvironmentFlags } from "../environment/environment-flags.ts";
import type { CheckFlags } from "../environment/print-environment-check.ts";
import type { ServeFlags } from "../environment/serve-environment.ts";
import { terminalStyle } from "../../report/text-style.ts";
import { listedText } from "../environment/listed-text.ts";
import { UsageError } from "../../errors.ts";
import { mySettings } from "../environment/me/my-settings.ts";
import { addSettings, givenSettings } from "../option.ts";
import { answerJsonLines, toLinesInput } from "../json-lines.ts";
import { addEnvImportCommands } from "./env-import.ts";
import { writeError, writeOut, writeResult } from "../write-out.ts";

interface EnvFlags extends EnvironmentFlags {
  readonly in?: string;
}

interface ListFlags extends EnvironmentFlags {
  readonly json?: true;
}

/** `turnwright env`: lists, checks, serves and plays environments without a model. */
export function defineEnv(env: Command): void {
  env.description("list environments, and play them without a model");
  env
    .command("list")
    .description("list environments: splits with their sizes, tools, source of the data")
    .argument("[environments...]", "names or modules (default: every environment with a name)")
    .option("--data <dir>", "a τ-bench bundle folder")
    .option("--python <path>", "interpreter of an environment in Python")
    .option("--json", "print JSON lines on a terminal, too")
    .action(listEnvironments);
  env
    .command("replay")
    .summary("make tool calls on fresh data")
    .description(
      'Reads lines {"id","calls":[{"name","arguments" or "argumentsText"}]} and answers each with the ' +
        "observations and, where the environment hashes its state, the hash after each call; every " +
        'line starts from fresh data. Beyond τ-bench, "split" and "taskIndex" say which task\'s ' +
        "(default: the first of the test split).",
    )
    .argument("<environment>", environmentHelp)
    .option("--data <dir>", "a τ-bench bundle folder")
    .option("--env-args <json>", "arguments of an environment in Python: a JSON object")
    .option("--python <path>", "interpreter of an environment in Python")
    .option("--in <file>", "read from a file instead of standard input")
    .action(async (name: string, flags: EnvFlags) => {
      const { openEnvironmentLines } = await import("../environment/environment-lines.ts");
      const lines = await openEnvironmentLines(environmentOf(name, flags));
      process.exitCode = await answerJsonLines(toLinesInput(flags.in), writeOut, lines.replay);
    });
  definePlay(env);
  env
    .command("check")
    .summary("play an environment with hostile agents, and report what would spoil a run")
    .description(
      "Plays tasks of each split with agents that write wrong messages and calls, with values at the limits " +
        "of each schema. Judges the environment and its user as a run does, and prints a line for each problem " +
        "with its task: code that throws or hangs for a model's mistake, invalid answers and lines, tasks and " +
        "answers that differ each time, users that never leave, scores that want what no state has, episodes " +
        "that share state. Ends with the counts, on a terminal as a table. Exit status 1 if there is an error.",
    )
    .argument("<environment>", environmentHelp)
    .option("--data <dir>", "a τ-bench bundle folder")
    .option("--env-args <json>", "arguments of an environment in Python: a JSON object")
    .option("--python <path>", "interpreter of an environment in Python")
    .addOption(tasksOption())
    .addOption(countOption("--timeout <seconds>", "longest time for one call (default: 10)"))
    .option("--json", "print one JSON object")
    .action(async (name: string, flags: CheckFlags) => {
      const { printEnvironmentCheck } = await import("../environment/print-environment-check.ts");
      process.exitCode = await printEnvironmentCheck(name, flags);
    });
  env
    .command("serve")
    .summary("serve an environment as OpenEnv, for others' trainers")
    .description(
      "Speaks OpenEnv's protocol: each connection plays episodes of its own. A reset takes split and index, " +
        'or seed; a step is {"type": "call_tool", "tool_name", "arguments"}, {"type": "say", "content"}, ' +
        '{"type": "list_tools"} or {"type": "finish"}. Prints {"url": …} when it listens; ends on Ctrl-C.',
    )
    .argument("<environment>", environmentHelp)
    .option("--data <dir>", "a τ-bench bundle folder")
    .option("--env-args <json>", "arguments of an environment in Python: a JSON object")
    .option("--python <path>", "interpreter of an environment in Python")
    .addOption(portOption())
    .option("--host <address>", "where it listens (default: 127.0.0.1, this machine alone)")
    .addOption(countOption("--max-sessions <n>", "connections at once (default: 1000)"))
    .action(async (name: string, flags: ServeFlags) => {
      const { serveEnvironment } = await import("../environment/serve-environment.ts");
      await serveEnvironment(name, flags);
    });
  addEnvImportCommands(env);
}

/** `turnwright env play`: by JSON lines, or with a person as the agent. */
function definePlay(env: Command): void {
  const play = env
    .command("play")
    .summary("play whole episodes from given actions, or as the agent yourself")
    .description(
      'Reads lines {"id","split","taskIndex","userReplies","actions"} and answers each with the steps, ' +
        "the reward and how it came about. The action `respond` with `content` talks to the user. " +
        'Without "userReplies" the environment\'s own user answers, if it has one ("seed" varies it).\n\n' +
        "With --me you are the agent, in the terminal: you see the policy, the tools and the user's line, and write " +
        'to the user or call tools, as name {"key": "value"} or name key=value. At the end you see the reward and ' +
        "the reasons for it.",
    )
    .argument("<environment>", environmentHelp)
    .option("--me", "play one task as the agent, in the terminal or from lines of a pipe")
    .option("--data <dir>", "a τ-bench bundle folder")
    .option("--env-args <json>", "arguments of an environment in Python: a JSON object")
    .option("--python <path>", "interpreter of an environment in Python")
    .option("--in <file>", "read from a file instead of standard input");
  addSettings(play, mySettings, (settings) => [{ heading: "With --me:", settings }]);
  play.action(async (name: string, flags: EnvFlags & { readonly me?: true }) => {
    const config = environmentOf(name, flags);
    const given = await givenSettings(mySettings, { ...flags });
    if (flags.me === true) {
      if (flags.in !== undefined) {
        throw new UsageError("Cannot use --in with --me: your lines come from standard input");
      }
      const { openMyConversation } = await import("../environment/me/open-my-conversation.ts");
      await openMyConversation(config, given);
      return;
    }
    const [extra] = Object.keys(given);
    if (extra !== undefined) {
      throw new UsageError(`Cannot use --${extra} without --me: each line names its own`);
    }
    const { openEnvironmentLines } = await import("../environment/environment-lines.ts");
    const lines = await openEnvironmentLines(config);
    process.exitCode = await answerJsonLines(toLinesInput(flags.in), writeOut, lines.play);
  });
}

function portOption(): Option {
  const help = "where it listens; 0: any free port (default: 8000)";
  return new Option("--port <n>", help).argParser((text) => {
    const port = Number(text);
    if (/^\d+$/.test(text) && port <= 65_535) return port;
    throw new InvalidArgumentError("expected a port, 0 to 65535");
  });
}

function tasksOption(): Option {
  const help = "tasks of each split that are played, or `all` (default: 3, spread over the split)";
  return new Option("--tasks <n|all>", help).argParser((text) => {
    if (text === "all") return text;
    const problem = checkNumber(text.trim() === "" ? Number.NaN : Number(text), count(1));
    if (problem === undefined) return Number(text);
    throw new InvalidArgumentError(`${problem}, or all`);
  });
}

function countOption(flag: string, help: string): Option {
  return new Option(flag, help).argParser((text) => {
    const problem = checkNumber(text.trim() === "" ? Number.NaN : Number(text), count(1));
    if (problem === undefined) return Number(text);
    throw new InvalidArgumentError(problem);
  });
}

const environmentHelp =
  "such as tau-retail, a module such as ./lamps.js, or Python such as ./desk.py";

async function listEnvironments(named: readonly string[], flags: ListFlags): Promise<void> {
  const bundle = flags.data ?? (await findBundle());
  const isAll = named.length === 0;
  for (const name of isAll ? environmentNames : named) {
    if (isAll && isTauName(name) && bundle === undefined) {
      writeError(`${name} is left out: it needs a τ-bench bundle (--data DIR)\n`);
      continue;
    }
    const environment = await loadEnvironment(environmentOf(name, { ...flags, data: bundle }));
    const { splits, tools, source } = environment;
    const listed = {
      environment: environment.name,
      splits,
      tools: tools.map((tool) => tool.name),
      source,
    };
    await writeResult(listed, { json: flags.json, text: () => listedText(listed, terminalStyle) });
  }
}
