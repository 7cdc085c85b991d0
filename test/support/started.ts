import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { expect } from "vitest";
import { cliFile } from "./run-cli.ts";

/** A command that runs until it is stopped. */
export class Started implements AsyncDisposable {
  readonly child: ChildProcess;
  output = "";
  /** True once it has ended, and all of its output was read. */
  #isOver = false;
  readonly #end: Promise<unknown>;

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, [cliFile, ...args], {
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, ...env },
    });
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding("utf8").on("data", (text: string) => (this.output += text));
    }
    this.#end = once(this.child, "close").then(() => (this.#isOver = true));
  }

  async until(text: string): Promise<void> {
    while (!this.output.includes(text)) {
      expect(this.#isOver, this.output).toBe(false);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal);
    return await this.ended();
  }

  /** Waits until it has ended of itself; its exit status. */
  async ended(): Promise<number | null> {
    await this.#end;
    return this.child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode === null && this.child.signalCode === null) await this.end("SIGKILL");
  }
}
