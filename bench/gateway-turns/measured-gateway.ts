import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath, pathToFileURL } from "node:url";
import { qwen3Folder } from "../bench-model.ts";
import type { ProcessFigures } from "./gateway-probe.ts";

/** A gateway of a checkout's command line, in a process of its own. */
export class MeasuredGateway implements AsyncDisposable {
  readonly #process: ChildProcess;
  readonly url: string;

  private constructor(process: ChildProcess, url: string) {
    this.#process = process;
    this.url = url;
  }

  /**
   * Starts a gateway.
   *
   * @param options.watchesLoop - True to measure blocks of the event loop, which costs CPU time.
   */
  static async start(options: {
    readonly checkout: string;
    readonly out: string;
    readonly engineUrl: string;
    readonly watchesLoop: boolean;
  }): Promise<MeasuredGateway> {
    const { checkout, out, engineUrl, watchesLoop } = options;
    const flags = {
      "--url": engineUrl,
      "--engine-mode": "direct",
      "--model": qwen3Folder(),
      "--parser": "qwen25",
      "--port": "0",
      "--out": out,
    };
    const probe = path.join(path.dirname(fileURLToPath(import.meta.url)), "gateway-probe.js");
    const program = path.join(checkout, "dist/src/cli/main.js");
    const preload = ["--import", pathToFileURL(probe).href];
    const command = ["gateway", ...Object.entries(flags).flat(), "--quiet", "--json"];
    const args = [...preload, program, ...command];
    const child = spawn(process.execPath, args, {
      stdio: ["ignore", "pipe", "inherit", "ipc"],
      env: { ...process.env, GATEWAY_WATCHES_LOOP: watchesLoop ? "1" : "0" },
    });
    for await (const line of createInterface({ input: child.stdout! })) {
      return new MeasuredGateway(child, (JSON.parse(line) as { readonly url: string }).url);
    }
    throw new Error(`Cannot start the gateway of ${checkout}: it ended before it listened`);
  }

  /** Opens a session, and returns its key. */
  async openSession(): Promise<string> {
    const response = await fetch(`${this.url}/sessions`, { method: "POST", body: "{}" });
    return ((await response.json()) as { readonly token: string }).token;
  }

  /** Returns the figures of the time since the call before. */
  async figures(): Promise<ProcessFigures> {
    const answer = once(this.#process, "message");
    this.#process.send("figures");
    return ((await answer) as [ProcessFigures])[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await ended;
  }
}
