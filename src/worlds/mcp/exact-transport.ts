import type { ChildProcess } from "node:child_process";
import { byteOrderMark } from "../../text/decode-text.ts";
import type { ExactMessages } from "./exact-messages.ts";
import { LineSplitter } from "../../text/line-splitter.ts";

/** The members of the MCP client's transport over standard input and output that are used here. */
interface StdioTransport {
  start(): Promise<void>;
}

/**
 * Makes a transport over standard input and output exchange exact messages. The client has no
 * option for this, so the function replaces the streams of its process.
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
  const lines = new LineSplitter();
  stdout.on("data", (chunk: Buffer) => {
    const text = lines.add(chunk).map((line) => `${messages.incoming(line)}\n`);
    if (text.length === 0) return;
    const bytes = Buffer.from(text.join(""));
    for (const listener of listeners) listener(bytes);
  });
}

/** Returns a `fetch()` for the MCP client over HTTP that exchanges exact messages. */
export function exactFetch(messages: ExactMessages): typeof fetch {
  return async (address, init) => {
    const { body } = init ?? {};
    const sent = typeof body === "string" ? { body: messages.outgoing(body) } : {};
    const response = await fetch(address, { ...init, ...sent });
    if (response.ok && typeof body === "string" && !awaitsAnswer(body))
      return await emptied(response);
    const type = response.headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();
    if (!response.ok || response.body === null) return response;
    if (type === "text/event-stream") {
      return copyOf(response, response.body.pipeThrough(exactEvents(messages)));
    }
    if (type !== "application/json") return response;
    return copyOf(response, messages.incoming(Buffer.from(await response.arrayBuffer())));
  };
}

/**
 * Maximum length of messages that are checked for an expected answer, in characters. Longer messages always expect an
 * answer.
 */
const longestNotice = 64 * 1024;

/** True if the message is a request. False for notifications and for the client's own answers. */
function awaitsAnswer(message: string): boolean {
  if (message.length > longestNotice) return true;
  const sent = JSON.parse(message) as object | readonly object[];
  return [sent].flat().some((one) => "method" in one && "id" in one);
}

/**
 * Removes the body of a reply to a message that expects no answer. The client would read the body to its end, and some
 * servers never end it.
 */
async function emptied(response: Response): Promise<Response> {
  await response.body?.cancel().catch(() => {});
  return copyOf(response, null);
}

function copyOf(response: Response, body: ReadableStream<Uint8Array> | string | null): Response {
  const headers = new Headers(response.headers);
  for (const name of ["content-length", "content-encoding"]) headers.delete(name);
  return new Response(body, { status: response.status, headers });
}

/**
 * Converts the messages in a stream of events. An event has one message in its `data:` lines and
 * ends with an empty line.
 */
function exactEvents(messages: ExactMessages): TransformStream<Uint8Array, Uint8Array> {
  const lines = new LineSplitter({ takesReturns: true });
  let isFirst = true;
  let data: Buffer[] = [];
  const endEvent = (): string => {
    if (data.length === 0) return "";
    const message = messages.incoming(Buffer.concat(data.slice(0, -1)));
    data = [];
    return `data: ${message.replaceAll(/\r\n|\r|\n/g, "\ndata: ")}\n`;
  };
  const read = (line: Buffer): string => {
    const found = isFirst ? withoutMark(line) : line;
    isFirst = false;
    if (found.length === 0) return `${endEvent()}\n`;
    const start = /^data(?:: ?|$)/.exec(found.toString("latin1", 0, 6))?.[0].length;
    if (start === undefined) return `${found.toString("utf8")}\n`;
    data.push(found.subarray(start), lineFeed);
    return "";
  };
  return new TransformStream({
    transform(chunk, controller) {
      const { buffer, byteOffset, byteLength } = chunk;
      const text = lines
        .add(Buffer.from(buffer, byteOffset, byteLength))
        .map(read)
        .join("");
      if (text !== "") controller.enqueue(Buffer.from(text));
    },
    flush(controller) {
      const rest = lines.end();
      const text = `${rest.length > 0 ? read(rest) : ""}${endEvent()}`;
      if (text !== "") controller.enqueue(Buffer.from(text));
    },
  });
}

const lineFeed = Buffer.from("\n");
const mark = Buffer.from(byteOrderMark);

function withoutMark(line: Buffer): Buffer {
  return line.subarray(0, mark.length).equals(mark) ? line.subarray(mark.length) : line;
}
