import { spawn } from "node:child_process";
import { constants } from "node:os";
import { startDeadline, withDeadline } from "../../async/deadline.ts";
import { killGroup } from "../../async/kill-processes.ts";
import { KeptOutput } from "./kept-output.ts";
import type { SandboxCommandOptions, SandboxResult } from "./sandbox.ts";

/** The default time limit of a command, in milliseconds. */
const defaultTimeoutMs = 30_000;
/** The default number of bytes to keep of each output. */
const defaultOutputBytes = 32_768;
/**
 * The longest time for which a process outside the group can keep the pipes open, in milliseconds.
 */
const drainMs = 1_000;

/**
 * Runs a program in its own process group, and keeps the beginning of its output. Kills the group
 * when the program has ended, when its time limit is over, and when the signal aborts.
 * @throws the errors of `spawn()`, such as ENOENT, and the signal's reason if it aborts.
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
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env: { ...env } }),
  });
  const kill = (): void => {
    if (child.pid !== undefined) killGroup(child.pid);
  };
  deadline.signal.addEventListener("abort", kill, { once: true });
  const limit = options.maxOutputBytes ?? defaultOutputBytes;
  const [stdout, stderr] = [new KeptOutput(limit), new KeptOutput(limit)];
  child.stdout.on("data", (piece: Buffer) => stdout.take(piece));
  child.stderr.on("data", (piece: Buffer) => stderr.take(piece));
  // The program may end without reading its input.
  child.stdin.on("error", () => {});
  child.stdin.end(stdin);
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const exitCode = await new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, by) => {
      resolve(code ?? 128 + (by === null ? 0 : constants.signals[by]));
    });
  });
  // Kills background processes too, and waits for the end of the output.
  kill();
  await withDeadline(async () => await closed, { ms: drainMs, signal, onLate: () => {} });
  child.stdout.destroy();
  child.stderr.destroy();
  signal.throwIfAborted();
  const [out, err] = [stdout.read(), stderr.read()];
  return {
    end: deadline.expired ? "out-of-time" : "exited",
    exitCode,
    stdout: out.text,
    stderr: err.text,
    omittedBytes: out.omittedBytes + err.omittedBytes,
    ...((!out.isUtf8 || !err.isUtf8) && { notUtf8: true as const }),
  };
}

/** Error codes that mean that the machine cannot start any process now. */
const shortages: ReadonlySet<string> = new Set(["EAGAIN", "EMFILE", "ENFILE", "ENOMEM"]);

/** True if a process could not start because the machine lacks resources. */
export function isShortage(error: unknown): boolean {
  return shortages.has((error as NodeJS.ErrnoException).code ?? "");
}

/** True if a process could not start because its arguments and variables are too long together. */
export function isTooLong(error: unknown): boolean {
  // Windows reports ENAMETOOLONG.
  return ["E2BIG", "ENAMETOOLONG"].includes((error as NodeJS.ErrnoException).code ?? "");
}
