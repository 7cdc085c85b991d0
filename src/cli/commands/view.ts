import type { Command } from "commander";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { spawn } from "node:child_process";
import { UsageError } from "../../errors.ts";
import { countOf } from "../../text/count-of.ts";
import { exportHtml } from "../../viewer/export-html.ts";
import { startViewer } from "../../viewer/server.ts";
import { openRuns } from "../../viewer/source/run-catalog.ts";
import type { RunIndex } from "../../viewer/source/run-index.ts";
import { successThresholdSetting } from "../eval-settings.ts";
import { addSettings } from "../option.ts";
import { openScoringEngine, type ScoringEngine } from "../scoring-engine.ts";
import { writeError, writeOut } from "../write-out.ts";

interface ViewFlags {
  readonly port?: string;
  readonly model?: string;
  readonly open?: true;
  readonly rescore?: true;
  readonly export?: string;
  readonly episode?: readonly string[];
  readonly successThreshold?: number;
}

/** `turnwright view`: shows runs in the browser. */
export function defineView(command: Command): void {
  command
    .description(
      "Shows runs in the browser: why each episode earned what it did, and its tokens with mask, " +
        "probability and policy version. Read-only, on this machine only, also while a run is being " +
        "played. A folder of runs shows all runs in it. Any two can be compared task by task.\n\n" +
        "With --export one file is written instead, which holds chosen episodes and opens without a " +
        "server.",
    )
    .option("--port <n>", "port on 127.0.0.1; 0 takes any free one (default: 7333)")
    .option("--model <dir>", "model folder to spell tokens with (default: the run's)")
    .option("--rescore", "let the run's engine compute logprobs again, for the rows that you view")
    .option("--open", "open the browser")
    .option("--export <file>", "write this file instead of serving")
    .option("--episode <id...>", "with --export: the episodes, by their ids or the ends of them");
  addSettings(command, [successThresholdSetting]).action(view);
}

async function view(dirs: readonly string[], flags: ViewFlags): Promise<void> {
  const { model, episode } = flags;
  const catalog = await openRuns(dirs, { successThreshold: flags.successThreshold });
  const { runs } = catalog;
  if (flags.export !== undefined) {
    const [run, ...others] = runs;
    if (run === undefined || others.length > 0) {
      throw new UsageError("Cannot export several runs into one file: name one");
    }
    const named = { wanted: episode ?? [], ...(model !== undefined && { model }) };
    const { html, episodeCount } = await exportHtml(run, named);
    await writeFile(flags.export, html);
    await writeOut(
      `${flags.export}: ${countOf(episodeCount, "episode")}, ${Buffer.byteLength(html)} bytes\n`,
    );
    return;
  }
  if (episode !== undefined) throw new UsageError("Cannot use --episode without --export");
  const { port: given = "7333" } = flags;
  const port = Number(given);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new UsageError(`Cannot use --port ${given}: expected a whole number up to 65535`);
  }
  if (flags.rescore === true && catalog.isFolder) {
    throw new UsageError("Cannot use --rescore with a folder of runs: name the runs");
  }
  const signal = untilInterrupted();
  await using scoring = await openEngines(flags.rescore === true ? runs : [], signal);
  const { rescorings } = scoring;
  await using viewer = await startViewer(catalog, {
    port,
    rescorings,
    ...(model !== undefined && { model }),
  });
  await writeOut(`${viewer.url}\n`);
  writeError("open this address in a browser; Ctrl-C ends the viewer\n");
  if (flags.open === true) openBrowser(viewer.url);
  if (!signal.aborted) await once(signal, "abort");
}

/** Returns a signal that aborts at Ctrl-C or SIGTERM, without a message. */
function untilInterrupted(): AbortSignal {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.once(name, () => controller.abort());
  }
  return controller.signal;
}

/** Opens an engine for each run, to recompute logprobs. */
async function openEngines(runs: readonly RunIndex[], signal: AbortSignal) {
  const rescorings = new Map<RunIndex, ScoringEngine>();
  for (const run of runs) rescorings.set(run, await openScoringEngine(run.dir, {}, { signal }));
  return {
    rescorings,
    async [Symbol.asyncDispose]() {
      for (const { engine } of rescorings.values()) await engine.close();
    },
  };
}

/** Opens an address in the system's browser. */
function openBrowser(url: string): void {
  const openers: Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>> = {
    darwin: ["open"],
    win32: ["cmd", "/c", "start", ""],
  };
  const [command, ...args] = openers[process.platform] ?? ["xdg-open"];
  const child = spawn(command, [...args, url], { stdio: "ignore", detached: true });
  child.once("error", () => writeError("no browser could be opened\n"));
  child.unref();
}
