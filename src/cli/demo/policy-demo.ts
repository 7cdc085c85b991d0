import { countOf } from "../../text/count-of.ts";
import path from "node:path";
import { packageFile } from "../../files/package-file.ts";
import { passHatK } from "../../report/statistics/pass-k.ts";
import { openStoredRun, type StoredRun } from "../../report/read-run.ts";
import { plainStyle, terminalStyle } from "../../report/text-style.ts";
import { isSuccessful } from "../../report/trial-result.ts";
import type { EpisodeRow } from "../../run/folder/run-folder.ts";
import { readRunConfig } from "../../composition/config/run-config.ts";
import { rollout } from "../commands/rollout.ts";
import { writeOut } from "../write-out.ts";
import { programName } from "../own-command.ts";
import { isFinished, verdictOn, viewHint } from "./conclusion.ts";
import { demoScope } from "./scope.ts";
import { showConversation } from "./show-conversation.ts";

const { sampleCount } = demoScope;

/** The folder of the policy that comes with the package. */
export function demoModelDir(): string {
  return packageFile("models/storefront-2m");
}

/** Plays the storefront with the small model, which this process samples. */
export async function playPolicyDemo(demo: {
  readonly model: string;
  readonly out: string;
  readonly seed: number;
  readonly taskCount: number;
}): Promise<void> {
  const { model, out, seed, taskCount } = demo;
  const config = readRunConfig({
    engine: "reference",
    model,
    env: "storefront",
    split: "test",
    user: "scripted",
    tasks: `0-${taskCount - 1}`,
    samples: sampleCount,
    concurrency: taskCount * sampleCount,
    "max-tokens-per-turn": 128,
    seed,
    "sampling-seed": seed,
    format: "slime",
    out,
  });
  await writeOut(introduction(taskCount));
  await rollout(config, { json: false, quiet: false });
  if (!(await isFinished(out))) return;
  const run = await openStoredRun(out);
  const rows: EpisodeRow[] = [];
  for await (const row of run.rows()) rows.push(row);
  await writeOut(`  ${listPassHatK(rows)}\n  ${await verdictOn(out)}\n\n`);
  await writeOut(await showOne(run, rows, model));
  await writeOut(nextSteps(demo));
}

function listPassHatK(rows: readonly EpisodeRow[]): string {
  const taskIds = new Set(rows.map(({ taskId }) => taskId));
  const tallies = [...taskIds].map((wanted) => {
    const trials = rows.filter(({ taskId }) => taskId === wanted);
    const successes = trials.filter(isSuccessful);
    return { trialCount: trials.length, successCount: successes.length };
  });
  const figures = Array.from({ length: sampleCount }, (_, index) => {
    const sum = tallies.reduce((total, tally) => total + passHatK(tally, index + 1), 0);
    return `^${index + 1} ${(sum / tallies.length).toFixed(3)}`;
  });
  return `pass       ${figures.join(", ")} (all of k attempts at a task succeed)`;
}

/**
 * Shows the shortest rewarded conversation with at least three calls, with its sampled tokens
 * marked.
 */
async function showOne(
  run: StoredRun,
  rows: readonly EpisodeRow[],
  model: string,
): Promise<string> {
  const solved = rows
    .filter(({ reward, counts }) => reward === 1 && counts.toolCallCount >= 3)
    .toSorted(
      (left, right) =>
        left.counts.tokenCount - right.counts.tokenCount ||
        (left.rolloutId < right.rolloutId ? -1 : 1),
    );
  const [shown = rows[0]!] = solved;
  const style = process.stdout.isTTY ? terminalStyle : plainStyle;
  const conversation = await showConversation(run, shown.rolloutId, { model, style });
  const marked = process.stdout.isTTY ? "In green" : "Between ⟦ and ⟧";
  return (
    `One of them, ${shown.rolloutId}, reward ${shown.reward ?? "none"}. ${marked} is what the policy ` +
    `sampled: these tokens\nare trained on, the others are masked.\n\n${conversation}\n\n`
  );
}

function introduction(taskCount: number): string {
  return (
    `Turnwright plays ${countOf(taskCount, "task")} of storefront, a small shop, ${sampleCount} times each: a ` +
    "policy talks to a simulated\ncustomer and calls tools, and is rewarded if the shop's records end " +
    "up right.\n\n" +
    "The policy is a real language model, if a small one: 1.6 million parameters, sampled token by\n" +
    "token in this process. It gets some right and some wrong, which is what training feeds on.\n\n"
  );
}

function nextSteps({ model, out }: { readonly model: string; readonly out: string }): string {
  return (
    "What next? See why each conversation got its reward; score all samples again with the same model;\n" +
    "play other tasks:\n\n" +
    `  ${programName} report ${out}\n` +
    `  ${programName} verify --rescore ${out}/samples.jsonl\n` +
    `  ${programName} rollout --engine reference --model ${path.relative("", model)} \\\n` +
    "    --env storefront --split train --tasks 0-99 --samples 8 --user scripted --out runs/mine\n\n" +
    "Your own model on SGLang, with rows for slime:\n\n" +
    `  ${programName} rollout --url http://127.0.0.1:30000 --model MODEL_FOLDER \\\n` +
    "    --env storefront --split train --tasks 0-99 --samples 8 --user scripted \\\n" +
    "    --format slime --out runs/sglang\n\n" +
    viewHint(out)
  );
}
