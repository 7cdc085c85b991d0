import type { RunProgress } from "../run/run-progress.ts";

/** Shows how a run goes: one line that is rewritten on a terminal, a line now and then elsewhere. */
export interface ProgressLine {
  update(progress: RunProgress): void;
  /** Shows the last state and ends the line. */
  end(): void;
}

/** Where progress goes. */
export interface ProgressOutput {
  /** Whether it is a terminal, and how wide. */
  readonly stream: Pick<NodeJS.WriteStream, "isTTY" | "columns">;
  readonly write: (text: string) => void;
  readonly now: () => number;
}

const terminalIntervalMs = 100;
const plainIntervalMs = 5_000;

/** A progress line on a terminal or, where the stream is piped, plain lines every few seconds. */
export function createProgressLine({ stream, write, now }: ProgressOutput): ProgressLine {
  const isTerminal = stream.isTTY;
  let shownAtMs = -Infinity;
  let latest: RunProgress | undefined;
  let isShown = true;

  function show(progress: RunProgress): void {
    shownAtMs = now();
    isShown = true;
    const text = describeProgress(progress);
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
    end() {
      if (latest !== undefined && !isShown) show(latest);
      if (isTerminal && latest !== undefined) write("\n");
    },
  };
}

/** A run's state in one line. */
export function describeProgress(progress: RunProgress): string {
  const { planned, finished, running, rewardMean, sampledTokensPerSecond, failures, retried } =
    progress;
  const parts = [
    planned === undefined ? `${finished} done` : `${finished}/${planned} done`,
    `${running} running`,
    `reward ${rewardMean === undefined ? "–" : rewardMean.toFixed(3)}`,
    `${formatCount(sampledTokensPerSecond)} tok/s`,
  ];
  const failed = Object.entries(failures).map(([code, count]) => `${code} ×${count}`);
  if (failed.length > 0) parts.push(`failed: ${failed.join(", ")}`);
  if (retried > 0) parts.push(`${retried} retried`);
  return parts.join(" · ");
}

/** A count with thousands separated: 12345.6 is `12,346`. */
export function formatCount(value: number): string {
  // The first use of `toLocaleString()` loads tables for 20 ms.
  return String(Math.round(value)).replaceAll(/\B(?=(?:\d{3})+$)/g, ",");
}
