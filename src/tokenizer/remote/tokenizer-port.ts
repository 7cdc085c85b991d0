import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { Worker } from "node:worker_threads";
import type { NumberedRequest, ServerContext, TokenizerReply } from "./tokenizer-server.ts";

/** A connection to a tokenizer in another thread or process. */
export interface TokenizerPort {
  post(request: NumberedRequest): void;
  /**
   * Sets whether the tokenizer keeps this process alive, which it should while a request is
   * pending.
   */
  setBusy(busy: boolean): void;
  end(): Promise<void>;
}

/** Callbacks of a port. */
export interface PortListener {
  onReply(reply: TokenizerReply): void;
  /** Called when the tokenizer has ended, by itself or by `end()`. */
  onEnd(reason: Error): void;
}

/** The program in the other thread or process. */
export interface PortProgram {
  readonly serve: (place: ServerContext) => void;
  /** The package with the tokenizer library. */
  readonly library: "tokenizers" | "@huggingface/tokenizers";
}

/** Opens a port. */
export type OpenPort = (program: PortProgram, listener: PortListener) => TokenizerPort;

/** Runs a tokenizer in a thread of this process. A crash of the library ends the process. */
export const openThread: OpenPort = ({ serve, library }, listener) => {
  // The code is passed as text, so that it runs the same from the sources and from the build.
  const worker = new Worker(
    `const { parentPort } = require("node:worker_threads");
    (${serve.toString()})({
      require,
      library: ${JSON.stringify(fileOf(library))},
      listen: (answer) => parentPort.on("message", answer),
      send: (reply) => parentPort.postMessage(reply, reply.ids ? [reply.ids.buffer] : []),
    });`,
    { eval: true },
  );
  worker.unref();
  worker.on("message", (reply: TokenizerReply) => listener.onReply(reply));
  worker.on("error", (error) => listener.onEnd(error));
  worker.on("exit", () => listener.onEnd(new Error("it ended")));
  return {
    post: (request) => worker.postMessage(request),
    setBusy: (busy) => (busy ? worker.ref() : worker.unref()),
    end: async () => {
      await worker.terminate();
    },
  };
};

/** Runs a tokenizer in its own process, so that a crash becomes an error here. */
export const openProcess: OpenPort = ({ serve, library }, listener) => {
  const child = spawn(
    process.execPath,
    [
      "-e",
      `(${serve.toString()})({
        require,
        library: ${JSON.stringify(fileOf(library))},
        listen: (answer) => process.on("message", answer),
        send: (reply) => process.send(reply, () => {}),
      });
      process.on("disconnect", () => process.exit());`,
    ],
    {
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      serialization: "advanced",
      env: { ...process.env, NODE_OPTIONS: "" },
    },
  );
  const { channel } = child;
  child.unref();
  channel?.unref();
  child.on("message", (reply) => listener.onReply(reply as TokenizerReply));
  child.on("error", (error) => listener.onEnd(error));
  child.on("exit", (code, signal) =>
    listener.onEnd(new Error(`its process ended with ${signal ?? `status ${code}`}`)),
  );
  return {
    post: (request) => void child.send(request, () => {}),
    setBusy: (busy) => (busy ? channel?.ref() : channel?.unref()),
    end: async () => void child.kill("SIGKILL"),
  };
};

function fileOf(library: PortProgram["library"]): string {
  return createRequire(import.meta.url).resolve(library);
}
