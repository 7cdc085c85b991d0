import { createHash } from "node:crypto";
import { z } from "zod";
import { UsageError, describeError } from "../../errors.ts";
import { backOffMs } from "../../async/back-off.ts";
import { systemClock, type Clock } from "../../async/clock.ts";
import type { SharedPlace } from "../place/shared-place.ts";

/**
 * The number of tries to read or write a file. A file server may show another client's file late,
 * or refuse a write for a moment. The waits between tries add up to seconds.
 */
const looks = 6;

/** The largest payload that is sent within the message, in bytes. Larger payloads use the shared place. */
export const mostInlineBytes = 100_000;

/** The largest payload, in bytes. */
const mostPayloadBytes = 256 * 2 ** 20;

/** A text sent between processes: the text itself, or the name of its file. JSON-able. */
export const payloadSchema = z.discriminatedUnion("by", [
  z.object({ by: z.literal("reply"), text: z.string().max(mostInlineBytes) }),
  z.object({
    by: z.literal("shared"),
    /** The file's path in the shared place. */
    name: z.string().regex(/^\w[\w.-]*(?:\/\w[\w.-]*)*$/),
    bytes: z.int().min(0).max(mostPayloadBytes),
    sha256: z.string().regex(/^[0-9a-f]{64}$/),
  }),
]);

/** A text sent between processes: the text itself, or the name of its file. JSON-able. */
export type Payload = z.infer<typeof payloadSchema>;

/** Thrown if a payload cannot be read, or differs from the payload that was sent. */
export class PayloadError extends Error {
  override readonly name = "PayloadError";
}

/** Returns the SHA-256 of a payload's text, in hexadecimal digits. */
export function hashOfPayload(payload: Payload): string {
  return payload.by === "shared" ? payload.sha256 : hashOf(Buffer.from(payload.text));
}

function hashOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/**
 * Sends a text, or its UTF-8 bytes, within the message if it is small, and through the shared place otherwise.
 * @param name - The file's name in the shared place. The first digits of the text's hash are appended, so that files of
 *   other processes are not overwritten.
 * @throws UsageError if the text is too large for the message and there is no shared place.
 * @throws PayloadError if the shared place refuses the file in every try.
 */
export async function sendPayload(
  content: string | Buffer,
  {
    place,
    name,
    what,
    clock = systemClock,
  }: {
    place: SharedPlace | undefined;
    name: string;
    what: string;
    clock?: Pick<Clock, "sleep">;
  },
): Promise<Payload> {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  if (bytes.length <= mostInlineBytes) return { by: "reply", text: String(content) };
  if (bytes.length > mostPayloadBytes) {
    throw new UsageError(
      `Cannot send ${what}: it has ${bytes.length} bytes, at most ${mostPayloadBytes} are taken`,
    );
  }
  if (place === undefined) {
    throw new UsageError(
      `Cannot send ${what}: it has ${bytes.length} bytes, and what is above ${mostInlineBytes} travels by a ` +
        "place that all share: give the run and its workers the same --shared",
    );
  }
  const sha256 = hashOf(bytes);
  const full = `${name}.${sha256.slice(0, 16)}`;
  for (let round = 1; ; round++) {
    try {
      await place.write(full, bytes);
      return { by: "shared", name: full, bytes: bytes.length, sha256 };
    } catch (error) {
      if (error instanceof UsageError) throw error;
      if (round === looks) {
        const fault = `the shared place ${place.shown} does not take it: ${describeError(error)}`;
        throw new PayloadError(`Cannot send ${what}: ${fault}`);
      }
    }
    await clock.sleep(backOffMs(round, { firstMs: 100 }));
  }
}

/**
 * Reads a payload.
 * @throws PayloadError if the payload does not exist or has another hash.
 */
export async function takePayload(
  payload: Payload,
  place: SharedPlace | undefined,
  clock: Pick<Clock, "sleep"> = systemClock,
): Promise<string> {
  if (payload.by === "reply") return payload.text;
  return (await takePayloadBytes(payload, place, { clock })).toString("utf8");
}

/**
 * Reads a payload as UTF-8.
 * @param options - `allocate` allocates the memory of a large payload.
 * @throws PayloadError as `takePayload()` does.
 */
export async function takePayloadBytes(
  payload: Payload,
  place: SharedPlace | undefined,
  {
    clock = systemClock,
    allocate,
  }: { readonly clock?: Pick<Clock, "sleep">; readonly allocate?: (size: number) => Buffer } = {},
): Promise<Buffer> {
  if (payload.by === "reply") return Buffer.from(payload.text);
  const { name, bytes, sha256 } = payload;
  if (place === undefined) {
    throw new PayloadError(`${name} is in a shared place, and no --shared is given here`);
  }
  let fault = "";
  for (let round = 1; round <= looks; round++) {
    const found = await place.read(name, bytes, allocate).catch((error: unknown) => {
      if (error instanceof UsageError) throw error;
      return describeError(error);
    });
    if (typeof found === "string") {
      fault = `${name} in the shared place ${place.shown} cannot be read: ${found}`;
    } else if (found === undefined) fault = `${name} is not in the shared place ${place.shown}`;
    else {
      if (found.length === bytes && hashOf(found) === sha256) return found;
      fault = `${name} in the shared place ${place.shown} is not what was sent`;
    }
    if (round < looks) await clock.sleep(backOffMs(round, { firstMs: 100 }));
  }
  throw new PayloadError(fault);
}
