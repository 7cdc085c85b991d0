import type { Dispatcher } from "undici";
import { decodeText } from "../text/decode-text.ts";
import { decodeBody, readContentCodings, TooLargeError } from "./content-coding.ts";

/** Largest reply in bytes; larger ones are refused. */
const maxReplyBytes = 64 * 2 ** 20;

/** Requests an uncompressed reply: without this header, a server may use any coding. */
export const plainReply = { "accept-encoding": "identity" } as const;

/**
 * Reads the text of a reply, also of one that is compressed although the request did not allow that.
 *
 * @throws TypeError if the text is not UTF-8.
 * @throws ContentCodingError for an unsupported coding, and for broken bytes.
 * @throws TooLargeError above 64 MiB.
 */
export async function readReplyText({
  headers,
  body,
}: Pick<Dispatcher.ResponseData, "headers" | "body">): Promise<string> {
  // Without a listener, the error of an abandoned body would end the process.
  body.on("error", () => {});
  try {
    const codings = readContentCodings(headers["content-encoding"]);
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of decodeBody(body, { codings, limitBytes: maxReplyBytes })) {
      size += piece.byteLength;
      if (size > maxReplyBytes) {
        throw new TooLargeError(`the reply is larger than ${maxReplyBytes} bytes`);
      }
      pieces.push(piece);
    }
    return decodeText(Buffer.concat(pieces), { mark: "drop" });
  } catch (error) {
    body.destroy();
    throw error;
  }
}
