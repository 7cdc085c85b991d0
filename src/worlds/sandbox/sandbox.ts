import type { GetResource } from "../../environment/episode-resources.ts";
import { refuse } from "../../environment/refuse.ts";

/** How a command is run. */
export interface SandboxCommandOptions {
  readonly signal: AbortSignal;
  /** How long it may take, in milliseconds; then it is killed. Default 30 seconds. */
  readonly timeoutMs?: number;
  /** What it reads from its standard input. Default nothing. */
  readonly stdin?: string;
  /** Where it starts, seen from the sandbox's own folder. Default that one. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Bytes that are kept of standard output, and as many of standard error. Default 32 768. */
  readonly maxOutputBytes?: number;
}

/** What a command came to. JSON-able. */
export interface SandboxResult {
  /** `exited` by itself; or killed as its time was over. */
  readonly end: "exited" | "out-of-time";
  /** As a shell gives it: 128 and the signal's number where a signal ended it. */
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes of the two that were not kept. */
  readonly omittedBytes: number;
  /** Present where an output is not UTF-8 throughout; U+FFFD stands for what is not. */
  readonly notUtf8?: true;
}

/** A place where commands of a model's can be run. Disposing it clears away all that is in it. */
export interface Sandbox extends AsyncDisposable {
  readonly id: string;
  /**
   * Runs a program with its arguments; no shell reads them. What the command does wrong is a result, and so is a
   * command that no system can start (exit code 126 or 127, with the reason in `stderr`).
   *
   * @throws RolloutError with party `environment` where the sandbox is gone.
   */
  run(command: readonly string[], options: SandboxCommandOptions): Promise<SandboxResult>;
}

/** Where sandboxes come from. */
export interface Sandboxes {
  /**
   * Opens one. The first call clears away what a process that died had left.
   *
   * @throws UsageError for what can never work here, RolloutError for what does not at the moment.
   */
  open(options: { readonly signal: AbortSignal }): Promise<Sandbox>;
  /**
   * The sandbox of an episode: opened when it is first asked for, and cleared away when the episode is over.
   * Takes the context that a tool or `score()` is given.
   */
  of(context: { readonly resource: GetResource; readonly signal: AbortSignal }): Promise<Sandbox>;
  /** Clears away what dead processes of this machine have left, and says how much that was. */
  sweep(): Promise<number>;
}

/**
 * Writes a file, and the folders above it. Needs `sh` in the sandbox.
 *
 * @throws ToolRefusal where it cannot be written, as `refuse()` does: in a tool, the model reads why.
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

/** What is read of a file where nothing else is said, in bytes. */
const defaultFileBytes = 2 ** 20;

/**
 * Reads a file; `undefined` where it cannot be read, is not UTF-8, or is larger than `maxBytes` (default 1 MiB).
 * Needs `cat` in the sandbox.
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
