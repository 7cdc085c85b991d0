import {
  ContentCodingError,
  openPushDecoder,
  readContentCodings,
  type PushDecoder,
} from "../../http/content-coding.ts";
import type { ReplyHead } from "./reply-body.ts";

/** Takes a reply's bytes as they come and passes them on decoded. */
export type ReplyReceiver = PushDecoder;

/** What a receiver calls; see `openPushDecoder()`. */
type ReceiverCalls = Parameters<typeof openPushDecoder>[1];

/**
 * Opens a receiver by the reply's `Content-Encoding`. The transport asks for none, but some proxies
 * compress all the same.
 */
export function openReceiver(headers: ReplyHead["headers"], calls: ReceiverCalls): ReplyReceiver {
  try {
    const codings = readContentCodings(headers["content-encoding"]);
    return codings.length === 0 ? plainReceiver(calls) : openPushDecoder(codings, calls);
  } catch (error) {
    if (!(error instanceof ContentCodingError)) throw error;
    return failedReceiver(error, calls);
  }
}

function plainReceiver({ onPiece, onEnd }: ReceiverCalls): ReplyReceiver {
  return {
    write(piece) {
      onPiece(piece as Buffer);
      return true;
    },
    end: () => onEnd(undefined),
    destroy: () => {},
  };
}

/** Fails with the first piece; a reply without a body, such as a 204, does not fail. */
function failedReceiver(error: ContentCodingError, { onEnd }: ReceiverCalls): ReplyReceiver {
  let isOver = false;
  const over = (cause: ContentCodingError | undefined): true => {
    if (!isOver) onEnd(cause);
    isOver = true;
    return true;
  };
  return {
    write: () => over(error),
    end: () => void over(undefined),
    destroy: () => {
      isOver = true;
    },
  };
}
