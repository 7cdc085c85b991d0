import {
  ContentCodingError,
  openPushDecoder,
  readContentCodings,
  type PushDecoder,
} from "../../http/content-coding.ts";
import type { ReplyHead } from "./reply-body.ts";

/** Decodes a reply's bytes as they arrive. */
export type ReplyReceiver = PushDecoder;

/** The callbacks of a receiver; see `openPushDecoder()`. */
type ReceiverCalls = Parameters<typeof openPushDecoder>[1];

/**
 * Opens a receiver for the reply's `Content-Encoding`. The transport requests none, but some
 * proxies compress replies anyway.
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

/** Fails with the first piece. A reply without a body, such as a 204, does not fail. */
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
