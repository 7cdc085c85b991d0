import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { type SglangTestServer, startSglangTestServer } from "../../src/testing/index.ts";
import { createLongPolicy, playAttempts, type PlayedAttempts } from "./play-attempts.ts";
import type { ProcessUsage } from "../usage-probe.ts";

/** Plays runs against a test server in this process. */
export class LongRuns implements AsyncDisposable {
  readonly #folder: string;
  readonly #server: SglangTestServer;

  private constructor(folder: string, server: SglangTestServer) {
    this.#folder = folder;
    this.#server = server;
  }

  static async open(): Promise<LongRuns> {
    const server = await startSglangTestServer({ policy: await createLongPolicy() });
    return new LongRuns(await mkdtemp(path.join(tmpdir(), "turnwright-bench-")), server);
  }

  /** The folder of the last run. */
  get out(): string {
    return path.join(this.#folder, "run");
  }

  async play(run: Omit<PlayedAttempts, "out" | "url">): Promise<ProcessUsage> {
    await rm(this.out, { recursive: true, force: true });
    const figures = await playAttempts({ ...run, out: this.out, url: this.#server.url });
    return figures!;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#server[Symbol.asyncDispose]();
    await rm(this.#folder, { recursive: true });
  }
}
