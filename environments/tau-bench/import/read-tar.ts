import { buffer } from "node:stream/consumers";
import { ReadableStream } from "node:stream/web";
import { createTarDecoder } from "modern-tar";
import { UsageError, describeError } from "../../../src/errors.ts";

/** A file of an archive. */
interface TarFile {
  /** As the archive spells it, with slashes. */
  readonly path: string;
  readonly content: Buffer;
}

/** What of an archive is read. */
export interface ReadTarOptions {
  /** The archive's name, for messages. */
  readonly place: string;
  /** Whether a file's content is wanted; all others are passed over. */
  readonly wants: (path: string) => boolean;
  /** Largest file that is wanted, in bytes. */
  readonly maxFileBytes: number;
  /** Largest archive, unpacked, in bytes. */
  readonly maxTotalBytes: number;
}

/**
 * Reads the wanted files of a tar archive, one after the other. Links, devices and folders are passed
 * over; nothing is written anywhere, so no path can lead astray.
 *
 * @throws UsageError where it is no archive, is cut off, or exceeds a limit.
 */
export async function* readTar(
  source: AsyncIterable<Buffer>,
  options: ReadTarOptions,
): AsyncGenerator<TarFile> {
  const bytes = upToLimit(source, options);
  try {
    yield* readEntries(bytes, options);
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const why = describeError(error);
    const problem = /truncated/i.test(why)
      ? "it is cut off"
      : `it is no tar archive, or a broken one: ${why}`;
    throw new UsageError(`Cannot unpack ${options.place}: ${problem}`, { cause: error });
  } finally {
    await bytes.return(undefined);
  }
}

async function* readEntries(
  bytes: AsyncIterable<Uint8Array>,
  options: ReadTarOptions,
): AsyncGenerator<TarFile> {
  const { place, wants, maxFileBytes } = options;
  const archive = ReadableStream.from(bytes);
  for await (const { header, body } of archive.pipeThrough(createTarDecoder({ strict: true }))) {
    const { name, size, type } = header;
    if (type !== "file" || !wants(name)) {
      await body.cancel();
      continue;
    }
    if (size > maxFileBytes) {
      throw new UsageError(
        `Cannot unpack ${place}: a file has ${size} bytes, limit ${maxFileBytes}`,
      );
    }
    yield { path: name, content: await buffer(body) };
  }
}

async function* upToLimit(
  source: AsyncIterable<Buffer>,
  { place, maxTotalBytes }: ReadTarOptions,
): AsyncGenerator<Uint8Array> {
  let total = 0;
  for await (const piece of source) {
    total += piece.length;
    if (total > maxTotalBytes) {
      throw new UsageError(`Cannot unpack ${place}: it exceeds ${maxTotalBytes} bytes`);
    }
    yield piece;
  }
}
