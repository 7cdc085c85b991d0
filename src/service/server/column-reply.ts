import type { FoundColumn } from "../service-columns.ts";
import { ServiceError } from "../service-error.ts";

/** Number of bytes that are read from the disk at once. */
const pieceBytes = 256 * 1024;

/**
 * Returns the reply with a part's bytes, or with the range that the caller asks for (RFC 9110, section 14). Reads the
 * disk only as fast as the caller reads.
 *
 * @param range - The header `Range`. A unit other than `bytes`, a text that is no range, and several ranges are ignored,
 *   as the RFC allows.
 * @param onEnd - Called once, when the reply has ended or its reader has left.
 * @throws ServiceError `bad-range` if the part has no byte of the range.
 */
export function columnReply(
  column: FoundColumn,
  range: string | undefined,
  onEnd: () => void,
): Response {
  const { size } = column;
  const asked = range === undefined ? undefined : readRange(range, size);
  const { start, end } = asked ?? { start: 0, end: size };
  const headers = {
    "content-type": "application/octet-stream",
    "content-length": String(end - start),
    "accept-ranges": "bytes",
    "cache-control": "no-store",
    ...(asked && { "content-range": `bytes ${start}-${end - 1}/${size}` }),
  };
  const body = streamBytes(column, { start, end, onEnd });
  return new Response(body, { status: asked === undefined ? 200 : 206, headers });
}

function streamBytes(
  { read }: FoundColumn,
  {
    start,
    end,
    onEnd,
  }: { readonly start: number; readonly end: number; readonly onEnd: () => void },
): ReadableStream<Uint8Array> {
  let at = start;
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          if (at < end) {
            const next = Math.min(at + pieceBytes, end);
            controller.enqueue(await read(at, next));
            at = next;
          }
          if (at < end) return;
          controller.close();
          onEnd();
        } catch (error) {
          onEnd();
          throw error;
        }
      },
      cancel: onEnd,
    },
    { highWaterMark: 0 },
  );
}

/** Reads `bytes=2-5`, `bytes=2-` or `bytes=-4`. Returns `undefined` for anything else. */
function readRange(
  text: string,
  size: number,
): { readonly start: number; readonly end: number } | undefined {
  const [isRange, first = "", last = ""] = /^bytes=(\d*)-(\d*)$/.exec(text.trim()) ?? [];
  if (isRange === undefined || (first === "" && last === "")) return undefined;
  if (first !== "" && last !== "" && Number(last) < Number(first)) return undefined;
  const start = first === "" ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === "" || last === "" ? size : Math.min(Number(last) + 1, size);
  if (start < end) return { start, end };
  throw new ServiceError("bad-range", `The range ${text} has no byte: the column has ${size}`, {
    size,
  });
}
