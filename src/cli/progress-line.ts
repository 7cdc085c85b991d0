import type { EngineOutage } from "../run/policy/engine-watch.ts";
import type { RunProgress } from "../run/run-progress.ts";
import { formatCount } from "../text/format-count.ts";

/**
 * Shows the progress of a run: as one rewritten line on a terminal, otherwise as a line every few
 * seconds.
 */
interface ProgressLine {
  update(progress: RunProgress): void;
  /** Prints a separate line above the progress line. */
  say(text: string): void;
  /** Prints the last state and ends the line. */
  end(): void;
}

/** The output of the progress line. */
interface ProgressOutput {
  /** The stream, which may be a terminal with a width. */
  readonly stream: Pick<NodeJS.WriteStream, "isTTY" | "columns">;
  readonly write: (text: string) => void;
  readonly now: () => number;
  /**
   * Returns the share of time in which this process computed, 0 to 1. Absent if it is not measured.
   */
  readonly busyShare?: () => number;
}

const terminalIntervalMs = 100;
const plainIntervalMs = 5_000;

/**
 * Creates a progress line for a terminal. If the stream is a pipe, prints a line every few seconds.
 */
export function createProgressLine({
  stream,
  write,
  now,
  busyShare,
}: ProgressOutput): ProgressLine {
  const isTerminal = stream.isTTY;
  let shownAtMs = -Infinity;
  let latest: RunProgress | undefined;
  let isShown = true;

  function show(progress: RunProgress): void {
    shownAtMs = now();
    isShown = true;
    const text = describeProgress(progress, busyShare?.());
    if (!isTerminal) {
      write(`${text}\n`);
      return;
    }
    const width = stream.columns || 80;
    write(`\r\u001b[2K${text.length < width ? text : `${text.slice(0, width - 2)}…`}`);
  }

  return {
    update(progress) {
      latest = progress;
      isShown = false;
      const interval = isTerminal ? terminalIntervalMs : plainIntervalMs;
      if (now() - shownAtMs >= interval) show(progress);
    },
    say(text) {
      write(isTerminal ? `\r\u001b[2K${text}\n` : `${text}\n`);
      if (isTerminal && latest !== undefined) show(latest);
    },
    end() {
      if (latest !== undefined && !isShown) show(latest);
      if (isTerminal && latest !== undefined) write("\n");
    },
  };
}

/** Describes the start or the end of an engine's outage. */
export function describeNews({ type, silentMs }: EngineOutage): string {
  const forSeconds = `${Math.round(silentMs / 1_000)} s`;
  return type === "engine-back"
    ? `engine answers again after ${forSeconds}`
    : `engine unreachable for ${forSeconds}, retrying`;
}

/**
 * Describes a run's state in one line.
 *
 * @param busyShare - The share of time in which this process computed, 0 to 1.
 */
export function describeProgress(progress: RunProgress, busyShare?: number): string {
  const { planned, finished, running, rewardMean, sampledTokensPerSecond, failures, retried } =
    progress;
  const parts = [
    planned === undefined ? `${finished} done` : `${finished}/${planned} done`,
    `${running} running`,
    `reward ${rewardMean === undefined ? "–" : rewardMean.toFixed(3)}`,
    `${formatCount(sampledTokensPerSecond)} tok/s`,
  ];
  const left = leftMs(progress);
  if (left !== undefined) parts.push(`about ${describeSpan(left)} left`);
  const spent = describeSpent(progress, busyShare);
  if (spent !== undefined) parts.push(spent);
  const failed = Object.entries(failures).map(([code, count]) => `${code} ×${count}`);
  if (failed.length > 0) parts.push(`failed: ${failed.join(", ")}`);
  if (retried > 0) parts.push(`${retried} retried`);
  return parts.join(" · ");
}

/** Number of episodes of this start before the remaining time is estimated. */
const leastPlayed = 5;

/**
 * Estimates the remaining time in milliseconds from the pace of this start. `undefined` if unknown: the first episodes
 * to end are the short ones, so as many must have ended as are running.
 */
function leftMs(progress: RunProgress): number | undefined {
  const { planned, finished, resumed, running, elapsedMs } = progress;
  const played = finished - resumed;
  if (planned === undefined || finished >= planned) return undefined;
  if (played < Math.max(leastPlayed, running)) return undefined;
  return ((planned - finished) * elapsedMs) / played;
}

/** Formats a duration as `40 s`, `12 min` or `3.5 h`. */
function describeSpan(ms: number): string {
  if (ms < 90_000) return `${Math.max(1, Math.round(ms / 1_000))} s`;
  if (ms < 90 * 60_000) return `${Math.round(ms / 60_000)} min`;
  return `${(ms / 3_600_000).toFixed(1)} h`;
}

/** Describes the shares of what turns waited for, and the load of this process. */
function describeSpent({ spentMs }: RunProgress, busyShare?: number): string | undefined {
  const { engine, user, environment } = spentMs;
  const sum = engine + user + environment;
  if (sum === 0) return undefined;
  const percent = (share: number): string => `${Math.round(100 * share)} %`;
  const waits = `waits: model ${percent(engine / sum)}, user ${percent(user / sum)}, tools ${percent(environment / sum)}`;
  return busyShare === undefined ? waits : `${waits}; we are busy ${percent(busyShare)}`;
}
