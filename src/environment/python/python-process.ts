import { spawn, type ChildProcessByStdio } from "node:child_process";
import path from "node:path";
import type { Readable, Writable } from "node:stream";
import { killGroup } from "../../async/kill-processes.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import { packageFile } from "../../files/package-file.ts";
import { LineSplitter } from "../../text/line-splitter.ts";
import { shorten } from "../../secrets/shorten.ts";
import { wellFormedJson } from "../../text/well-formed.ts";
import { PythonFailure, describePythonError, type PythonErrorFacts } from "./python-failure.ts";

/** The time between two stronger ways to interrupt a request, in milliseconds. */
const graceMs = 300;

/** The time limit for the first message, in milliseconds. */
const helloMs = 10_000;

/** Maximum length of a message, in bytes. */
const maxLineSplitter = 16 * 2 ** 20;

/** The time in which the last output of a process that has ended arrives, in milliseconds. */
const outputMs = 1_000;

/** The most characters of a process's stderr that are kept. */
const keptCharacters = 65_536;

/** Options of `PythonProcess.start()`. */
export interface PythonProcessOptions {
  /** The interpreter's path. */
  readonly executable: string;
  /** Gets what the environment prints, and the errors of threads and tasks that no call waits for. */
  readonly onTrouble: (trouble: string) => void;
  readonly onOutput: (text: string) => void;
  /** Called every 2 seconds while the environment is imported. */
  readonly onProgress?: () => void;
}

/** The first message of a process. */
interface Hello {
  readonly hello: number;
  readonly python: string;
  readonly pid: number;
  readonly executable: string;
}

/** The time limit of a request, and the signal that cancels it. */
export interface RequestOptions {
  /** In milliseconds. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  /** The `arguments` of a call: a JSON text. */
  readonly writtenArguments?: string;
}

interface Pending {
  readonly resolve: (answer: unknown) => void;
  readonly reject: (reason: unknown) => void;
  readonly timeoutMs: number;
  /** True once the request was interrupted. */
  isLate: boolean;
  timer: NodeJS.Timeout | undefined;
}

/** The folder of the Python package. */
const sources = packageFile("integrations/python");

/** The processes that run. They end with this process. */
const running = new Set<PythonProcess>();

process.on("exit", () => {
  for (const one of running) one.kill();
});

/**
 * A Python process that plays environments. Speaks one JSON object a line on stdin and stdout: see
 * docs/python-environments.md. It has a process group of its own, does not keep this process alive while it is idle, and
 * ends with it.
 */
export class PythonProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #options: PythonProcessOptions;
  readonly #pending = new Map<number, Pending>();
  /** The end of what the process wrote to its standard error. */
  #stderr = "";
  readonly #hello = withResolvers<Hello>();
  #nextId = 1;
  #holdCount = 0;
  /** The reason why no request can be made any more. */
  #death: PythonFailure | undefined;

  private constructor(options: PythonProcessOptions) {
    this.#options = options;
    const paths = [sources, process.env["PYTHONPATH"]].filter(Boolean).join(path.delimiter);
    // Without compiled files, some libraries take three times as long to import. Containers often set this variable.
    const { PYTHONDONTWRITEBYTECODE: _, ...inherited } = process.env;
    this.#child = spawn(options.executable, ["-u", "-m", "turnwright.host"], {
      detached: true,
      stdio: ["pipe", "pipe", "pipe"],
      env: { ...inherited, PYTHONPATH: paths, PYTHONUNBUFFERED: "1" },
    });
    running.add(this);
    const lines = new LineSplitter();
    this.#child.stdout.on("data", (bytes: Buffer) => {
      for (const line of lines.add(bytes)) this.#take(line);
      if (lines.openLength > maxLineSplitter) this.#endForLongLine();
    });
    this.#child.stderr.setEncoding("utf8");
    this.#child.stderr.on("data", (text: string) => {
      this.#stderr = (this.#stderr + text).slice(-keptCharacters);
      options.onOutput(text);
    });
    // Writing to a process that has ended: its end is reported below.
    this.#child.stdin.on("error", () => {});
    this.#child.once("error", (error) =>
      this.#end("died", `it cannot be started: ${error.message}`),
    );
    this.#child.once("exit", () => {
      // A child that left the process's group keeps the output open.
      setTimeout(() => {
        this.#child.stdout.destroy();
        this.#child.stderr.destroy();
      }, outputMs).unref();
    });
    // `close` comes after the last output.
    this.#child.once("close", (code, signal) => {
      this.#end(
        "died",
        signal === null ? `it ended with exit code ${code}` : `it ended by ${signal}`,
      );
    });
    this.#hello.promise.catch(() => undefined);
  }

  /**
   * Starts a process.
   * @throws PythonFailure if it does not say hello within 10 seconds.
   */
  static async start(options: PythonProcessOptions): Promise<PythonProcess> {
    const started = new PythonProcess(options);
    const timer = setTimeout(() => {
      started.#end("died", `it did not answer within ${helloMs} ms`);
      started.kill();
    }, helloMs);
    try {
      await started.#hello.promise;
    } finally {
      clearTimeout(timer);
    }
    started.#setKeepsAlive(false);
    return started;
  }

  /** Keeps this process alive until the result is disposed of. */
  hold(): Disposable {
    if (this.#holdCount++ === 0) this.#setKeepsAlive(true);
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (isHeld && --this.#holdCount === 0) this.#setKeepsAlive(false);
        isHeld = false;
      },
    };
  }

  get isAlive(): boolean {
    return this.#death === undefined;
  }

  /**
   * Makes a request. A request that exceeds its limit is cancelled, then interrupted, and then the process is killed.
   * @throws PythonFailure
   * @throws the signal's reason if it aborts. The request is interrupted then.
   */
  async request(
    what: string,
    given: Readonly<Record<string, unknown>>,
    { timeoutMs, signal, writtenArguments }: RequestOptions,
  ): Promise<unknown> {
    signal?.throwIfAborted();
    if (this.#death !== undefined) throw this.#death;
    const id = this.#nextId++;
    const { promise, resolve, reject } = withResolvers<unknown>();
    const pending: Pending = { resolve, reject, timeoutMs, isLate: false, timer: undefined };
    this.#pending.set(id, pending);
    pending.timer = setTimeout(
      () => this.#interrupt(id, "cancel"),
      Math.min(timeoutMs, 2 ** 31 - 1),
    );
    const abort = (): void => {
      reject(signal!.reason);
      this.#interrupt(id, "cancel");
    };
    signal?.addEventListener("abort", abort, { once: true });
    const head = `{"id":${id},"do":"${what}","with":`;
    const body = JSON.stringify(given);
    const more = writtenArguments === undefined ? "}" : `,"arguments":${writtenArguments}}`;
    // Python can neither print nor store half of a surrogate pair.
    this.#child.stdin.write(`${head}${wellFormedJson(body.slice(0, -1) + more)}}\n`);
    try {
      return await promise;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  /** Ends the process and its children immediately. */
  kill(): void {
    running.delete(this);
    if (this.#child.pid !== undefined) killGroup(this.#child.pid);
  }

  /** Ends the process: closes its input, and kills it if it does not end within 5 seconds. */
  async close(): Promise<void> {
    if (this.#death !== undefined) return;
    this.#death = new PythonFailure("died", "the environment was closed");
    const closed = new Promise((resolve) => this.#child.once("close", resolve));
    this.#child.stdin.end();
    const timer = setTimeout(() => this.kill(), 5_000);
    this.#setKeepsAlive(true);
    await closed;
    clearTimeout(timer);
    running.delete(this);
  }

  /**
   * Interrupts a request in a stronger way each time: cancel, SIGUSR2 twice (two at once are one), SIGUSR1 (prints the
   * lines) and SIGKILL.
   */
  #interrupt(id: number, how: "cancel" | "signal" | "signal again" | "kill"): void {
    const pending = this.#pending.get(id);
    if (pending === undefined || this.#death !== undefined) return;
    pending.isLate = true;
    clearTimeout(pending.timer);
    if (how === "cancel") {
      this.#child.stdin.write(`{"id":0,"do":"cancel","with":{"id":${id}}}\n`);
      pending.timer = setTimeout(() => this.#interrupt(id, "signal"), graceMs);
    } else if (how !== "kill") {
      this.#child.kill("SIGUSR2");
      const next = how === "signal" ? "signal again" : "kill";
      pending.timer = setTimeout(() => this.#interrupt(id, next), graceMs);
    } else {
      this.#child.kill("SIGUSR1");
      pending.timer = setTimeout(() => this.kill(), graceMs);
    }
  }

  #take(line: Buffer): void {
    if (line.length > maxLineSplitter) {
      this.#endForLongLine();
      return;
    }
    // Messages are ASCII.
    const text = line.toString("latin1");
    let message: Record<string, unknown>;
    try {
      message = JSON.parse(text) as Record<string, unknown>;
    } catch {
      this.#end("protocol", `it sent a line that is not JSON: ${shorten(text, 200)}`);
      this.kill();
      return;
    }
    if (typeof message["id"] === "number") this.#answer(message["id"], message);
    else if ("hello" in message) this.#hello.resolve(message as unknown as Hello);
    else if (typeof message["busy"] === "number") this.#giveUp(message["busy"], message);
    else if ("progress" in message) this.#options.onProgress?.();
    else if ("stray" in message) {
      const facts = message["stray"] as PythonErrorFacts;
      const failure = new PythonFailure("raised", facts.message, facts);
      this.#options.onTrouble(
        `a thread or task that no call waits for failed${failure.where}: ${describePythonError(facts)}`,
      );
    }
  }

  #answer(id: number, { ok, error }: Record<string, unknown>): void {
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    this.#settle(id, pending);
    if (error === undefined) {
      pending.resolve(ok);
      return;
    }
    const facts = error as PythonErrorFacts;
    const isOverdue = facts.code === "overdue" || pending.isLate;
    pending.reject(
      isOverdue
        ? new PythonFailure("overdue", `no answer within ${pending.timeoutMs} ms`, facts)
        : new PythonFailure("raised", describePythonError(facts), facts),
    );
  }

  /** Gives up the late requests that wait for the code of another request, which is within its own limit. */
  #giveUp(busyId: number, { file, line }: Pick<PythonErrorFacts, "file" | "line">): void {
    for (const [id, pending] of this.#pending) {
      if (!pending.isLate || id === busyId) continue;
      this.#settle(id, pending);
      const why = `no answer within ${pending.timeoutMs} ms, because another episode's code blocks the process`;
      const facts = { type: "", message: why, ...(file !== undefined && { file, line: line! }) };
      pending.reject(new PythonFailure("overdue", why, facts));
    }
  }

  #settle(id: number, pending: Pending): void {
    clearTimeout(pending.timer);
    this.#pending.delete(id);
  }

  #endForLongLine(): void {
    this.#end("too-long", `it sent a line of more than ${maxLineSplitter / 2 ** 20} MiB`);
    this.kill();
  }

  #end(kind: "died" | "too-long" | "protocol", why: string): void {
    running.delete(this);
    const output = this.#stderr.trim();
    const place = placeInOutput(output);
    const facts: PythonErrorFacts = { type: "", message: why, ...place, traceback: output };
    this.#death ??= new PythonFailure(kind, why, facts);
    this.#hello.reject(this.#death);
    for (const [id, pending] of this.#pending) {
      this.#settle(id, pending);
      pending.reject(
        pending.isLate
          ? new PythonFailure("overdue", `no answer within ${pending.timeoutMs} ms`, facts)
          : this.#death,
      );
    }
  }

  /** Decides whether the running process keeps this process alive. */
  #setKeepsAlive(keeps: boolean): void {
    const { stdin, stdout, stderr } = this.#child;
    for (const part of [this.#child, stdin, stdout, stderr] as { ref?(): void; unref?(): void }[]) {
      if (keeps) part.ref?.();
      else part.unref?.();
    }
  }
}

/**
 * Returns the place at which a process was when it wrote the lines of its threads (faulthandler). The most recent call
 * comes first.
 */
function placeInOutput(output: string): Pick<PythonErrorFacts, "file" | "line"> {
  const stacks = output.split("(most recent call first):").slice(1);
  for (const stack of stacks.toReversed()) {
    for (const [, file, line] of stack.matchAll(/File "([^"<]+)", line (\d+)/g)) {
      if (file === undefined || isForeign(file)) continue;
      return { file, line: Number(line) };
    }
  }
  return {};
}

/** True for a file of Turnwright or of an installed package. */
function isForeign(file: string): boolean {
  return file.startsWith(sources + path.sep) || /[/\\]lib[/\\]python[^/\\]*[/\\]/.test(file);
}
