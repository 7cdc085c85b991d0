import { createParser } from "eventsource-parser";
import type { Redactor } from "../../secrets/redactor.ts";
import { decodeText } from "../../text/decode-text.ts";
import { ReplyProblem } from "./reply-reading.ts";

/** What a reply begins with. */
export interface ReplyHead {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A reply's body while it comes. */
interface ReplyBody {
  /** Takes what has come. `too-long` where the limit is exceeded. */
  add(chunk: Buffer): "too-long" | undefined;
  /**
   * The whole text; empty for a stream of events.
   *
   * @throws TypeError where it is not UTF-8.
   */
  end(): string;
}

/** Settings of `openBody()`. */
interface ReplyBodyOptions {
  /** Of the whole body; of a stream, of what has come of an event that is not whole yet. */
  readonly limitBytes: number;
  /** Applied to events. */
  readonly redactor: Redactor;
  readonly onEvent: ((data: string) => void) | undefined;
}

/** Opens a body: a stream of events where that is asked for and answered, a text otherwise. */
export function openBody({ status, headers }: ReplyHead, options: ReplyBodyOptions): ReplyBody {
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

/** A character, like an event, can come in several chunks. */
function openEvents(onEvent: (data: string) => void, limitBytes: number): ReplyBody {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  /** Bytes since the last event. */
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
