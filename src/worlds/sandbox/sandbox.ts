import type { GetResource } from "../../environment/episode-resources.ts";
import { refuse } from "../../environment/refuse.ts";

/** Options for running a command. */
export interface SandboxCommandOptions {
  readonly signal: AbortSignal;
  /** The time limit, in milliseconds. After it, the command is killed. Default 30 seconds. */
  readonly timeoutMs?: number;
  /** The standard input. Default: empty. */
  readonly stdin?: string;
  /** The working directory, relative to the sandbox's folder. Default: that folder. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /**
   * Maximum number of bytes to keep of standard output and, separately, of standard error. Default
   * 32 768.
   */
  readonly maxOutputBytes?: number;
}

/** The result of a command. JSON-able. */
export interface SandboxResult {
  /** `exited`: the command ended by itself. `out-of-time`: it was killed at its time limit. */
  readonly end: "exited" | "out-of-time";
  /**
   * The exit code as a shell reports it: 128 plus the signal's number if a signal ended the
   * command.
   */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** The number of bytes of both outputs that were not kept. */
  readonly omittedBytes: number;
  /** Present if an output is not valid UTF-8. U+FFFD replaces the invalid bytes. */
  readonly notUtf8?: true;
}

/** A place to run a model's commands. Disposing it removes everything in it. */
export interface Sandbox extends AsyncDisposable {
  readonly id: string;
  /**
   * Runs a program with arguments, without a shell. A failing command is a result. So is a command
   * that the system cannot start: its exit code is 126 or 127, and `stderr` has the reason.
   * @throws RolloutError with party `environment` if the sandbox is gone.
   */
  run(command: readonly string[], options: SandboxCommandOptions): Promise<SandboxResult>;
}

/** A source of sandboxes. */
export interface Sandboxes {
  /**
   * Opens a sandbox. The first call removes sandboxes that dead processes left.
   *
   * @throws UsageError for a problem that no retry can solve, RolloutError for a temporary one.
   */
  open(options: { readonly signal: AbortSignal }): Promise<Sandbox>;
  /**
   * Returns the sandbox of an episode. The first call opens it, and it is removed at the end of the
   * episode. Takes the context of a tool or of `score()`.
   */
  of(context: { readonly resource: GetResource; readonly signal: AbortSignal }): Promise<Sandbox>;
  /** Removes the sandboxes of dead processes on this machine, and returns their number. */
  sweep(): Promise<number>;
}

/**
 * Writes a file, and creates the folders above it. Needs `sh` in the sandbox.
 * @throws ToolRefusal if it cannot be written, as `refuse()` does, so that the model reads the
 *   reason.
 */
export async function writeSandboxFile(
  sandbox: Sandbox,
  {
    file,
    text,
    signal,
  }: { readonly file: string; readonly text: string; readonly signal: AbortSignal },
): Promise<void> {
  const script = 'mkdir -p "$(dirname "$1")" && cat > "$1"';
  const options = { signal, stdin: text };
  const result = await sandbox.run(["sh", "-c", script, "sh", file], options);
  if (result.exitCode === 0) return;
  const why = result.end === "out-of-time" ? "it took too long" : result.stderr.trim();
  refuse(`Cannot write ${JSON.stringify(file)}: ${why}`);
}

/** The default limit for reading a file, in bytes. */
const defaultFileBytes = 2 ** 20;

/**
 * Reads a file. Returns `undefined` if it cannot be read, is not UTF-8, or is larger than
 * `maxBytes` (default 1 MiB). Needs `cat` in the sandbox.
 */
export async function readSandboxFile(
  sandbox: Sandbox,
  {
    file,
    signal,
    maxBytes = defaultFileBytes,
  }: { readonly file: string; readonly signal: AbortSignal; readonly maxBytes?: number },
): Promise<string | undefined> {
  const options = { signal, maxOutputBytes: maxBytes };
  const result = await sandbox.run(["cat", "--", file], options);
  const isWhole = result.exitCode === 0 && result.omittedBytes === 0 && result.notUtf8 !== true;
  return isWhole ? result.stdout : undefined;
}
