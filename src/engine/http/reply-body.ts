import { createParser } from "eventsource-parser";
import type { Redactor } from "../../secrets/redactor.ts";
import { decodeText } from "../../text/decode-text.ts";
import type { BlobCutter, BlobReader } from "./blob-cutter.ts";
import { ReplyProblem } from "./reply-reading.ts";

/** The start of a reply. */
export interface ReplyHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** The body of a reply while it arrives. */
interface ReplyBody {
  /** Adds bytes. Returns `too-long` if the limit is exceeded. */
  add(chunk: Buffer): "too-long" | undefined;
  /**
   * Returns the complete text, or `""` for a stream of events.
   *
   * @throws TypeError if it is not UTF-8.
   */
  end(): string;
}

/** Settings of `openBody()`. */
interface ReplyBodyOptions {
  /**
   * Maximum number of bytes of the body, or of an incomplete event of a stream, without the texts that
   * are cut out.
   */
  readonly limitBytes: number;
  /** Applied to events. */
  readonly redactor: Redactor;
  readonly onEvent: ((data: string) => void) | undefined;
  /** Cuts texts out of the body of a reply with status 200. */
  readonly cutter?: BlobCutter<BlobReader> | undefined;
}

/**
 * Opens a body: a stream of events if the caller takes events and the reply is one, a text
 * otherwise. Its functions also throw the errors of the cutter.
 */
export function openBody(head: ReplyHead, options: ReplyBodyOptions): ReplyBody {
  const body = openWhole(head, options);
  const { cutter } = options;
  if (cutter === undefined || head.status !== 200) return body;
  return {
    add(chunk) {
      for (const piece of cutter.take(chunk)) {
        if (body.add(piece) === "too-long") return "too-long";
      }
      return undefined;
    },
    end() {
      body.add(cutter.end());
      return body.end();
    },
  };
}

function openWhole({ status, headers }: ReplyHead, options: ReplyBodyOptions): ReplyBody {
  const { onEvent, limitBytes, redactor } = options;
  const type = headers["content-type"];
  const isStream = typeof type === "string" && /^text\/event-stream\b/i.test(type);
  if (onEvent !== undefined && status === 200 && isStream) {
    return openEvents((data) => onEvent(redactor.jsonText(data)), limitBytes);
  }
  const chunks: Buffer[] = [];
  let length = 0;
  return {
    add(chunk) {
      length += chunk.length;
      if (length > limitBytes) return "too-long";
      chunks.push(chunk);
      return undefined;
    },
    end: () => decodeText(Buffer.concat(chunks)),
  };
}

/** Opens a stream of events. A character or an event can be split over several chunks. */
function openEvents(onEvent: (data: string) => void, limitBytes: number): ReplyBody {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  /** The number of bytes since the last event. */
  let openLength = 0;
  const parser = createParser({
    onEvent({ data }) {
      openLength = 0;
      onEvent(data);
    },
  });
  return {
    add(chunk) {
      openLength += chunk.length;
      parser.feed(decode(decoder, chunk));
      return openLength > limitBytes ? "too-long" : undefined;
    },
    end: () => "",
  };
}

function decode(decoder: InstanceType<typeof TextDecoder>, chunk: Buffer): string {
  try {
    return decoder.decode(chunk, { stream: true });
  } catch {
    throw new ReplyProblem("the stream is not UTF-8", "UTF-8");
  }
}
