import type { Command } from "commander";
import {
  playActions,
  replayCalls,
  type ReplayCall,
} from "../../../environments/tau-bench/index.ts";
import type { TauEnvironment } from "../../../environments/tau-bench/index.ts";
import type { PlainJson, PyDict } from "../../python/value.ts";
import { isPyDict } from "../../python/value.ts";
import {
  environmentEntries,
  findBundle,
  loadEnvironment,
  loadTauEnvironment,
} from "../environments.ts";
import {
  LineError,
  answerJsonLines,
  dictListMember,
  listMember,
  textMember,
  type LinesInput,
} from "../json-lines.ts";
import { writeOut } from "../write-out.ts";

interface EnvFlags {
  readonly data?: string;
  readonly in?: string;
}

/** `turnwright env`: environments, and playing them without a model. */
export function addEnvCommand(program: Command): Command {
  const env = program
    .command("env")
    .description("list environments, and play them without a model");
  env
    .command("list")
    .description("list the environments: splits with their sizes, tools, source of the data")
    .option("--data <dir>", "a τ-bench bundle folder")
    .action(listEnvironments);
  env
    .command("replay")
    .summary("make tool calls on fresh data")
    .description(
      'Reads lines {"id","calls":[{"name","arguments" or "argumentsText"}]} and answers each with the\n' +
        "observations and the state's hash after each call; every line starts from fresh data.",
    )
    .argument("<environment>", "such as tau-retail")
    .option("--data <dir>", "a τ-bench bundle folder")
    .option("--in <file>", "read from a file instead of standard input")
    .action(replayLines);
  env
    .command("play")
    .summary("play whole episodes from given actions and user lines")
    .description(
      'Reads lines {"id","split","taskIndex","userReplies","actions"} and answers each with the steps,\n' +
        "the reward and how it came about. The action `respond` with `content` talks to the user.",
    )
    .argument("<environment>", "such as tau-retail")
    .option("--data <dir>", "a τ-bench bundle folder")
    .option("--in <file>", "read from a file instead of standard input")
    .action(playLines);
  return env;
}

async function listEnvironments(flags: EnvFlags): Promise<void> {
  const bundle = flags.data ?? (await findBundle());
  for (const { name, needsBundle } of environmentEntries) {
    if (needsBundle && bundle === undefined) {
      process.stderr.write(`${name} is left out: it needs a τ-bench bundle (--data DIR)\n`);
      continue;
    }
    const { splits, tools, source } = await loadEnvironment(name, bundle);
    const line = { environment: name, splits, tools: tools.map((tool) => tool.name), source };
    await writeOut(`${JSON.stringify(line)}\n`);
  }
}

async function replayLines(name: string, flags: EnvFlags): Promise<void> {
  const environment = await loadTauEnvironment(name, flags.data);
  const { signal } = new AbortController();
  process.exitCode = await answerJsonLines(inputOf(flags), writeOut, async (line) => {
    const { observations, stateHashes } = await replayCalls(environment, callsOf(line, "calls"), {
      signal,
    });
    return { observations, stateHashes };
  });
}

async function playLines(name: string, flags: EnvFlags): Promise<void> {
  const environment = await loadTauEnvironment(name, flags.data);
  process.exitCode = await answerJsonLines(inputOf(flags), writeOut, (line) =>
    playLine(environment, line),
  );
}

async function playLine(environment: TauEnvironment, line: PyDict): Promise<PlainJson> {
  const taskIndex = line.get("taskIndex");
  if (typeof taskIndex !== "bigint")
    throw new LineError("bad-line", '"taskIndex" must be a whole number');
  const played = await playActions(
    environment,
    {
      task: environment.task(textMember(line, "split"), Number(taskIndex)),
      userReplies: listMember(line, "userReplies").map((reply, index) => {
        if (typeof reply === "string") return reply;
        throw new LineError("bad-line", `"userReplies"[${index}] must be a text`);
      }),
      actions: callsOf(line, "actions"),
    },
    { signal: new AbortController().signal },
  );
  return JSON.parse(JSON.stringify(played)) as PlainJson;
}

function callsOf(line: PyDict, member: string): readonly ReplayCall[] {
  return dictListMember(line, member).map((call, index) => {
    const name = call.get("name");
    const given = call.get("arguments");
    const text = call.get("argumentsText");
    const place = `"${member}"[${index}]`;
    if (typeof name !== "string") throw new LineError("bad-line", `${place}.name must be a text`);
    if (typeof text === "string") return { name, argumentsText: text };
    if (given === undefined || given === null) return { name };
    if (isPyDict(given)) return { name, arguments: given };
    throw new LineError("bad-line", `${place}.arguments must be an object`);
  });
}

function inputOf(flags: EnvFlags): LinesInput {
  return { stdin: process.stdin, ...(flags.in === undefined ? {} : { file: flags.in }) };
}
