import { readVariable } from "../../secrets/read-variable.ts";
import { rowsText } from "../rows-text.ts";
import type { Command } from "commander";
import path from "node:path";
import { Redactor } from "../../secrets/redactor.ts";
import { errorFiles, identifyErrors, type ErrorSummary } from "../../report/identify-errors.ts";
import { openStoredRun } from "../../report/read-run.ts";
import { chatModelFromConfig } from "../../user/chat/chat-model-config.ts";
import { loadEnvironment } from "../../composition/environment/environments.ts";
import { readEnvironmentConfig, scopeSettings } from "../../composition/config/scope-config.ts";
import {
  completeSettings,
  count,
  flag,
  requireSetting,
  seconds,
  text,
  type Setting,
  type SettingValues,
} from "../../composition/config/setting.ts";
import { storedSettings } from "../../composition/config/stored-settings.ts";
import { addSettings, givenSettings } from "../option.ts";
import { tauTaskInfo } from "../tau-task-info.ts";
import { hideSecrets, writeError, writeOut } from "../write-out.ts";

const judgeSettings = [
  {
    name: "judge-url",
    kind: text,
    value: "url",
    help: "OpenAI-compatible endpoint of the judge model",
  },
  { name: "judge-model", kind: text, value: "name", help: "name of the judge model" },
  {
    name: "judge-api-key-env",
    kind: text,
    value: "variable",
    help: "environment variable that holds the judge model's API key",
  },
  {
    name: "judge-concurrency",
    kind: count(1),
    value: "n",
    help: "episodes judged at once",
    default: 8,
  },
  {
    name: "judge-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for one answer",
    default: 120,
  },
  {
    name: "max-episodes",
    kind: count(1),
    value: "n",
    help: "most episodes to judge (default: all)",
  },
  {
    name: "data",
    kind: text,
    value: "dir",
    help: "a τ-bench bundle folder (default: the run's)",
  },
  { name: "json", kind: flag, help: "print the summary as JSON" },
] as const satisfies readonly Setting[];

type JudgeValues = SettingValues<(typeof judgeSettings)[number]>;

/**
 * `turnwright identify-errors`: asks a judge which party caused each unsuccessful episode, and by
 * which error.
 */
export function defineIdentifyErrors(command: Command): void {
  command.description(
    "Judges each scored, unsuccessful episode of a run: the fault of the user, the " +
      "agent or the environment; the agent's by type. Writes errors.jsonl (a verdict " +
      "a line), errors.json and errors.tau-bench.json into the run's folder. Start " +
      "it again with the same judge to continue; another judge starts over.",
  );
  addSettings(command, judgeSettings);
  command.action(async (dir: string, flags: Record<string, unknown>) => {
    const given = await givenSettings(judgeSettings, flags);
    await identify(dir, completeSettings(judgeSettings, given));
  });
}

async function identify(dir: string, values: JudgeValues): Promise<void> {
  const run = await openStoredRun(dir);
  const stored = storedSettings(run.manifest, scopeSettings);
  const { data = stored["data"] } = values;
  const played = readEnvironmentConfig(completeSettings(scopeSettings, { ...stored, data }));
  const environment = await loadEnvironment(played);
  const { judge, redactor } = createJudge(values);
  const controller = new AbortController();
  process.once("SIGINT", () => controller.abort());
  try {
    const summary = await identifyErrors(run, {
      judge,
      taskInfo: tauTaskInfo(environment),
      concurrency: values["judge-concurrency"],
      maxCount: values["max-episodes"] ?? Infinity,
      signal: controller.signal,
      redactor,
      onJudged: ({ rolloutId, fault, failure }) => {
        const verdict = fault === undefined ? failure?.code : (fault.type ?? fault.party);
        writeError(`${rolloutId}: ${verdict}\n`);
      },
    });
    await writeOut(
      values.json === true ? `${JSON.stringify(summary)}\n` : printErrors(summary, dir),
    );
    if (summary.judgedCount < summary.episodeCount) process.exitCode = 1;
  } catch (error) {
    if (!controller.signal.aborted) throw error;
    writeError("interrupted: start the same command again to continue\n");
    process.exitCode = 130;
  } finally {
    await judge.close();
  }
}

/** Creates the judge's model, and registers its key and the secrets in its URL for redaction. */
function createJudge(values: JudgeValues) {
  const { "judge-api-key-env": apiKeyEnv, "judge-concurrency": maxConcurrent } = values;
  const key = readVariable(process.env, apiKeyEnv, "--judge-api-key-env");
  const endpoint = "the endpoint, such as http://127.0.0.1:8000/v1";
  const config = {
    baseUrl: requireSetting(values["judge-url"], "judge-url", endpoint),
    model: requireSetting(values["judge-model"], "judge-model", "the name of the judge model"),
    maxConcurrent,
    timeoutMs: values["judge-timeout"] * 1000,
    ...(apiKeyEnv !== undefined && { apiKeyEnv }),
  };
  const redactor = new Redactor(key === undefined ? [] : [key]);
  redactor.learnUrl(config.baseUrl);
  hideSecrets(redactor);
  const place = { place: "judge", party: "grader", env: process.env } as const;
  return { judge: chatModelFromConfig(config, place), redactor };
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
  return `\n${rowsText(rows)}`;
}
