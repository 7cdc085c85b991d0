import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { createTextPolicy } from "../../src/testing/policies/text-policy.ts";
import type { ServerPolicy } from "../../src/testing/policies/server-policy.ts";
import { qwen3Folder } from "../bench-model.ts";
import { ourFolder } from "../checkouts.ts";
import type { ProcessUsage } from "../usage-probe.ts";

/** Turns of an attempt. Its prompt grows from some 5,000 tokens to some 140,000. */
export const turnCount = 43;

/** Attempts that are live at once. */
export const attemptCount = 16;

/** Returns the policy of the attempts: prose and a call each turn, some 440 tokens. */
export async function createLongPolicy(): Promise<ServerPolicy> {
  const texts = Array.from({ length: turnCount - 1 }, (_, turn) => {
    const lines = Array.from(
      { length: 30 },
      (_, line) => `Step ${turn}.${line}: compare the file with its test before the next change.`,
    );
    const call = JSON.stringify({ name: "read_file", arguments: { from: turn * 37 + 1 } });
    return `${lines.join("\n")}\n<tool_call>\n${call}\n</tool_call>`;
  });
  return await createTextPolicy(texts, { modelDir: qwen3Folder(), otherwise: "Done." });
}

/** A run of all attempts. */
export interface PlayedAttempts {
  readonly checkout: string;
  /** The run's folder. A folder with files is resumed. */
  readonly out: string;
  readonly url: string;
  /** The largest number of turns of an attempt. */
  readonly turns: number;
  /** Number of attempts, all of them at once. Default: `attemptCount`. */
  readonly count?: number;
  /** Puts other characters than ASCII into 2 % of the lines. Default: false. */
  readonly isUnicode?: boolean;
  /** Ends the process before its first request to the engine. Default: false. */
  readonly endsAtRequest?: boolean;
  /** Kills the process. */
  readonly kill?: Promise<void>;
}

/**
 * Plays a run in a new process of a checkout's command line. Returns the process's figures, or `undefined` if it was
 * killed.
 *
 * @throws Error if the run failed.
 */
export async function playAttempts(run: PlayedAttempts): Promise<ProcessUsage | undefined> {
  const { checkout, out, url, turns, endsAtRequest = false, kill } = run;
  const { count = attemptCount, isUnicode = false } = run;
  const figures = `${out}.figures.json`;
  const flags = {
    "--env": path.join(ourFolder, "dist/bench/long-attempts/environment.js"),
    "--split": "test",
    "--tasks": `0-${count - 1}`,
    "--url": url,
    "--engine-mode": "direct",
    "--model": qwen3Folder(),
    "--parser": "qwen25",
    "--max-turns": String(turns),
    "--concurrency": String(count),
    "--format": "slime",
    "--out": out,
  };
  const probe = pathToFileURL(path.join(ourFolder, "dist/bench/usage-probe.js")).href;
  const program = path.join(checkout, "dist/src/cli/main.js");
  const args = ["--import", probe, program, "rollout", ...Object.entries(flags).flat(), "--quiet"];
  const child = spawn(process.execPath, args, {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      LONG_ATTEMPTS_CHECKOUT: checkout,
      LONG_ATTEMPTS_CORPUS: path.join(ourFolder, "src"),
      USAGE_FILE: figures,
      ...(isUnicode && { LONG_ATTEMPTS_UNICODE: "1" }),
      USAGE_END: endsAtRequest ? "first-request" : "run",
    },
  });
  void kill?.then(() => child.kill("SIGKILL"));
  const [status, signal] = (await once(child, "exit")) as [number | null, string | null];
  if (kill !== undefined && signal === "SIGKILL") return undefined;
  if (status !== 0) throw new Error(`Cannot play ${program}: it ended with status ${status}`);
  return JSON.parse(await readFile(figures, "utf8")) as ProcessUsage;
}
