import { fork } from "node:child_process";
import { once } from "node:events";
import { readFile, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { qwen3Folder } from "../bench-model.ts";
import type { ProcessUsage } from "../usage-probe.ts";

/** A run of τ-bench retail, with the Qwen3 tokenizer. */
export interface PlayedRun {
  /** The root of the checkout. Its command line plays the run. */
  readonly checkout: string;
  readonly bundleDir: string;
  /** A temporary folder, removed at the end. */
  readonly folder: string;
  readonly episodeCount: number;
  /** The user's lines. After the last one, the user leaves. Default: the lines of the scripted user. */
  readonly userLines?: readonly string[];
  /** The address of the engine. */
  readonly url: string;
  /** Ends the process. Default: the run's end. */
  readonly end?: Promise<void>;
}

/** Runs a checkout's command line in a new process until the run's end, or until `end`. */
export async function playCommand(run: PlayedRun): Promise<ProcessUsage> {
  const { checkout, bundleDir, folder, episodeCount, userLines, url, end } = run;
  const [out, usage] = [path.join(folder, "run"), path.join(folder, "usage.json")];
  const flags = {
    "--env": "tau-retail",
    "--data": bundleDir,
    "--split": "test",
    "--tasks": `0-${episodeCount - 1}`,
    "--user": "scripted",
    "--url": url,
    "--model": qwen3Folder(),
    "--out": out,
  };
  const script = userLines === undefined ? [] : await writeScript(folder, userLines);
  const child = fork(
    path.join(checkout, "dist/src/cli/main.js"),
    ["rollout", ...Object.entries(flags).flat(), ...script, "--quiet"],
    {
      execArgv: ["--import", new URL("../usage-probe.js", import.meta.url).href],
      env: { ...process.env, USAGE_FILE: usage },
      stdio: ["ignore", "ignore", "pipe", "ipc"],
    },
  );
  let said = "";
  child.stderr?.on("data", (text: Buffer) => (said += text.toString()));
  void end?.then(() => child.send("end"));
  const [code] = (await once(child, "close")) as [number | null];
  const taken = JSON.parse(await readFile(usage, "utf8")) as ProcessUsage;
  await rm(out, { recursive: true, force: true });
  await rm(usage);
  if (code === 0) return taken;
  throw new Error(`the command of ${checkout} ended with ${code}: ${said.slice(-500)}`);
}

async function writeScript(folder: string, lines: readonly string[]): Promise<readonly string[]> {
  const file = path.join(folder, "user.json");
  const farewell = { text: "That is all. Thank you.", leaves: true };
  await writeFile(file, JSON.stringify([...lines, farewell]));
  return ["--user-script", file];
}
