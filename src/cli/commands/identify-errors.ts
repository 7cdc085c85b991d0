import type { Command } from "commander";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { errorFiles, identifyErrors, type ErrorSummary } from "../../report/identify-errors.ts";
import { openStoredRun } from "../../report/read-run.ts";
import { chatModelFromConfig } from "../../user/chat-model-config.ts";
import { loadEnvironment } from "../environments.ts";
import {
  addSettings,
  numberWithDefault,
  requiredText,
  resolveSettings,
  textOf,
} from "../option.ts";
import type { Setting, Settings } from "../option.ts";
import { tauTaskInfo } from "../tau-task-info.ts";
import { writeOut } from "../write-out.ts";

const whole = { type: "number", min: 1, max: Infinity, whole: true } as const;

const judgeSettings: readonly Setting[] = [
  {
    name: "judge-url",
    kind: { type: "text" },
    value: "url",
    help: "OpenAI-compatible endpoint of the judge model",
  },
  { name: "judge-model", kind: { type: "text" }, value: "name", help: "name of the judge model" },
  {
    name: "judge-api-key-env",
    kind: { type: "text" },
    value: "variable",
    help: "environment variable that holds the judge model's API key",
  },
  {
    name: "judge-concurrency",
    kind: whole,
    value: "n",
    help: "episodes judged at once",
    default: 8,
  },
  {
    name: "judge-timeout",
    kind: { type: "number", min: 0.001, max: 604_800 },
    value: "s",
    help: "seconds for one answer",
    default: 120,
  },
  { name: "max-episodes", kind: whole, value: "n", help: "most episodes to judge (default: all)" },
  {
    name: "data",
    kind: { type: "text" },
    value: "dir",
    help: "a τ-bench bundle folder (default: the run's)",
  },
  { name: "json", kind: { type: "flag" }, help: "print the summary as JSON" },
];

/** `turnwright identify-errors`: who is to blame for unsuccessful episodes, and for what. */
export function addIdentifyErrorsCommand(program: Command): void {
  const command = program
    .command("identify-errors")
    .summary("let a judge model say who is to blame for unsuccessful episodes, and for what")
    .description(
      "Judges each scored, unsuccessful episode of a run: the fault of the user, the\n" +
        "agent or the environment; the agent's by type. Writes errors.jsonl (a verdict\n" +
        "a line), errors.json and errors.tau-bench.json into the run's folder. Start\n" +
        "it again to go on.",
    )
    .argument("<run>", "a run's folder");
  addSettings(command, judgeSettings);
  command.action(async (dir: string, flags: Record<string, unknown>) => {
    await identify(dir, await resolveSettings(judgeSettings, flags, undefined));
  });
}

async function identify(dir: string, settings: Settings): Promise<void> {
  const run = await openStoredRun(dir);
  const stored = (run.manifest.found["settings"] ?? {}) as Settings;
  const environment = await loadEnvironment(
    requiredText(stored, "env", "the run does not name its environment"),
    textOf(settings, "data") ?? textOf(stored, "data"),
  );
  const judge = buildJudge(settings);
  const controller = new AbortController();
  process.once("SIGINT", () => controller.abort());
  try {
    const summary = await identifyErrors(run, {
      judge,
      taskInfo: tauTaskInfo(environment),
      concurrency: numberWithDefault(settings, "judge-concurrency"),
      maxCount: Number(settings["max-episodes"] ?? Infinity),
      signal: controller.signal,
      onJudged: ({ rolloutId, fault, failure }) => {
        const verdict = fault === undefined ? failure?.code : (fault.type ?? fault.party);
        process.stderr.write(`${rolloutId}: ${verdict}\n`);
      },
    });
    await writeOut(
      settings["json"] === true ? `${JSON.stringify(summary)}\n` : printErrors(summary, dir),
    );
    if (summary.judgedCount < summary.episodeCount) process.exitCode = 1;
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    process.stderr.write("interrupted: start the same command again to go on\n");
    process.exitCode = 130;
  } finally {
    await judge.close();
  }
}

function buildJudge(settings: Settings) {
  const apiKeyEnv = textOf(settings, "judge-api-key-env");
  if (apiKeyEnv !== undefined && (process.env[apiKeyEnv] ?? "") === "") {
    throw new UsageError(`Cannot read the judge's key: the variable ${apiKeyEnv} is not set`);
  }
  const config = {
    baseUrl: requiredText(settings, "judge-url", "the endpoint, such as http://127.0.0.1:8000/v1"),
    model: requiredText(settings, "judge-model", "the name of the judge model"),
    maxConcurrent: numberWithDefault(settings, "judge-concurrency"),
    timeoutMs: numberWithDefault(settings, "judge-timeout") * 1000,
    ...(apiKeyEnv === undefined ? {} : { apiKeyEnv }),
  };
  return chatModelFromConfig(config, { place: "judge", party: "grader", env: process.env });
}

function printErrors(summary: ErrorSummary, dir: string): string {
  const { episodeCount, judgedCount, byParty, byType, failures, costUsd } = summary;
  const share = (count: number, of: number) => `${count} (${((100 * count) / of).toFixed(1)} %)`;
  const list = (counts: Readonly<Partial<Record<string, number>>>, of: number) =>
    Object.entries(counts)
      .map(([name, count = 0]) => `${name} ${share(count, of)}`)
      .join(", ") || "–";
  const rows: [string, string][] = [
    ["judged", `${judgedCount} of ${episodeCount} unsuccessful episodes`],
    ["to blame", list(byParty, judgedCount)],
    ["the agent's faults", list(byType, byParty.agent ?? 0)],
    ...(Object.keys(failures).length === 0
      ? []
      : [["not judged", list(failures, episodeCount)] as [string, string]]),
    [
      "judge",
      `${summary.judge}: ${summary.inputTokenCount} tokens in, ${summary.outputTokenCount} out` +
        (costUsd === undefined ? "" : `, $${costUsd.toFixed(4)}`),
    ],
    ["verdicts", path.join(dir, errorFiles.judged)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return `\n${rows.map(([name, text]) => `  ${name.padEnd(width)}  ${text}\n`).join("")}`;
}
