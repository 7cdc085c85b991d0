import { spawn } from "node:child_process";
import { constants } from "node:os";
import { startDeadline, withDeadline } from "../../internal/deadline.ts";
import type { SandboxCommandOptions, SandboxResult } from "./sandbox.ts";

/** How long a command may take where nothing else is said, in milliseconds. */
const defaultTimeoutMs = 30_000;
/** What is kept of an output where nothing else is said, in bytes. */
const defaultOutputBytes = 32_768;
/** How long a process that left its group may hold the pipes open, in milliseconds. */
const drainMs = 1_000;

/**
 * Runs a program as a process group of its own, keeps the beginning of what it writes, and kills the group
 * when it has ended, when its time is over, and when the signal is aborted.
 *
 * @throws what `spawn()` throws, such as ENOENT, and the signal's reason where that is aborted.
 */
export async function runProcess(
  [program = "", ...args]: readonly string[],
  options: SandboxCommandOptions,
): Promise<SandboxResult> {
  const { signal, timeoutMs = defaultTimeoutMs, stdin = "", cwd, env } = options;
  signal.throwIfAborted();
  using deadline = startDeadline({ ms: timeoutMs, parents: [signal] });
  const child = spawn(program, args, {
    detached: true,
    stdio: ["pipe", "pipe", "pipe"],
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env: { ...env } }),
  });
  const kill = (): void => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  deadline.signal.addEventListener("abort", kill, { once: true });
  const limit = options.maxOutputBytes ?? defaultOutputBytes;
  const [stdout, stderr] = [new KeptOutput(limit), new KeptOutput(limit)];
  child.stdout.on("data", (piece: Buffer) => stdout.take(piece));
  child.stderr.on("data", (piece: Buffer) => stderr.take(piece));
  // A program need not read what it is given.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, by) => {
      resolve(code ?? 128 + (by === null ? 0 : constants.signals[by]));
    });
  });
  // What it left in the background goes with it, and what was written is read to its end.
  kill();
  await withDeadline(async () => await closed, { ms: drainMs, signal, onLate: () => {} });
  child.stdout.destroy();
  child.stderr.destroy();
  signal.throwIfAborted();
  return {
    end: deadline.expired ? "out-of-time" : "exited",
    exitCode,
    stdout: stdout.text,
    stderr: stderr.text,
    omittedBytes: stdout.omittedBytes + stderr.omittedBytes,
  };
}

/** Kills a process with those that it started. */
export function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // ESRCH: all of them have ended.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** The beginning of an output, however much is written. */
class KeptOutput {
  readonly #limit: number;
  readonly #pieces: Buffer[] = [];
  #length = 0;
  omittedBytes = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  take(piece: Buffer): void {
    const kept = piece.subarray(0, Math.max(0, this.#limit - this.#length));
    if (kept.length > 0) this.#pieces.push(kept);
    this.#length += kept.length;
    this.omittedBytes += piece.length - kept.length;
  }

  get text(): string {
    return Buffer.concat(this.#pieces).toString("utf8");
  }
}
