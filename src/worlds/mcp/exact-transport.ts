import type { ChildProcess } from "node:child_process";
import type { ExactMessages } from "./exact-messages.ts";

/** A transport of the MCP client's over standard input and output, as far as it is used here. */
interface StdioTransport {
  start(): Promise<void>;
}

/**
 * Has a transport over standard input and output send and receive exact messages. The client gives no place to
 * do that at: the streams of its process are taken.
 */
export function exactStdio(transport: StdioTransport, messages: ExactMessages): void {
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    const { _process: child } = transport as unknown as { readonly _process?: ChildProcess };
    if (child?.stdin == null || child.stdout == null) {
      throw new Error("this version of @modelcontextprotocol/client is not known, expected 2.x");
    }
    exactInput(child.stdin, messages);
    exactOutput(child.stdout, messages);
  };
}

function exactInput(stdin: NonNullable<ChildProcess["stdin"]>, messages: ExactMessages): void {
  const write = stdin.write.bind(stdin) as (text: string) => boolean;
  Object.assign(stdin, { write: (text: string) => write(messages.outgoing(text)) });
}

function exactOutput(stdout: NonNullable<ChildProcess["stdout"]>, messages: ExactMessages): void {
  const listeners = stdout.listeners("data") as ((chunk: Buffer) => void)[];
  stdout.removeAllListeners("data");
  const lines = new LineBytes();
  stdout.on("data", (chunk: Buffer) => {
    const text = lines.add(chunk).map((line) => `${messages.incoming(line)}\n`);
    if (text.length === 0) return;
    const bytes = Buffer.from(text.join(""));
    for (const listener of listeners) listener(bytes);
  });
}

/** Cuts a stream of bytes into lines, without their line feeds. */
class LineBytes {
  #parts: Buffer[] = [];

  /** The lines that end in a chunk. */
  add(chunk: Buffer): readonly Buffer[] {
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = chunk.indexOf(0x0a); end >= 0; end = chunk.indexOf(0x0a, start)) {
      lines.push(Buffer.concat([...this.#parts, chunk.subarray(start, end)]));
      this.#parts = [];
      start = end + 1;
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
    return lines;
  }

  /** What follows the last line feed. */
  end(): Buffer {
    return Buffer.concat(this.#parts);
  }
}

/** `fetch()` for the MCP client over HTTP that sends and receives exact messages. */
export function exactFetch(messages: ExactMessages): typeof fetch {
  return async (address, init) => {
    const { body } = init ?? {};
    const sent = typeof body === "string" ? { body: messages.outgoing(body) } : {};
    const response = await fetch(address, { ...init, ...sent });
    const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
    if (!response.ok || response.body === null) return response;
    if (type === "text/event-stream") {
      return copyOf(response, response.body.pipeThrough(exactEvents(messages)));
    }
    if (type !== "application/json") return response;
    return copyOf(response, messages.incoming(Buffer.from(await response.arrayBuffer())));
  };
}

function copyOf(response: Response, body: ReadableStream<Uint8Array> | string): Response {
  const headers = new Headers(response.headers);
  for (const name of ["content-length", "content-encoding"]) headers.delete(name);
  return new Response(body, { status: response.status, headers });
}

/** Each message of a stream of events stands in one line `data: …`. */
function exactEvents(messages: ExactMessages): TransformStream<Uint8Array, Uint8Array> {
  const lines = new LineBytes();
  const rewrite = (line: Buffer): string => {
    const start = /^data: ?/.exec(line.toString("latin1", 0, 6))?.[0].length;
    if (start === undefined) return line.toString("utf8");
    return `data: ${messages.incoming(line.subarray(start))}`;
  };
  return new TransformStream({
    transform(chunk, controller) {
      const { buffer, byteOffset, byteLength } = chunk;
      const found = lines.add(Buffer.from(buffer, byteOffset, byteLength));
      const text = found.map((line) => `${rewrite(line)}\n`).join("");
      if (text !== "") controller.enqueue(Buffer.from(text));
    },
    flush(controller) {
      const rest = lines.end();
      if (rest.length > 0) controller.enqueue(Buffer.from(rewrite(rest)));
    },
  });
}
