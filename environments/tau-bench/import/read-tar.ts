import { buffer } from "node:stream/consumers";
import { ReadableStream } from "node:stream/web";
import { createTarDecoder } from "modern-tar";
import { UsageError, describeError } from "../../../src/errors.ts";

/** A file of an archive. */
interface TarFile {
  /** The path as the archive spells it, with slashes. */
  readonly path: string;
  readonly content: Buffer;
}

/** The selection and the limits of a read. */
export interface ReadTarOptions {
  /** The archive's name, for messages. */
  readonly place: string;
  /** True for a wanted file; all others are skipped. */
  readonly wants: (path: string) => boolean;
  /** Size limit of a wanted file, in bytes. */
  readonly maxFileBytes: number;
  /** Size limit of the unpacked archive, in bytes. */
  readonly maxTotalBytes: number;
}

/**
 * Yields the wanted files of a tar archive. Links, devices and folders are skipped. No files are written, so no
 * path is dangerous.
 *
 * @throws UsageError if it is not an archive, is incomplete, or exceeds a limit.
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
      : `it is not a tar archive, or is damaged: ${why}`;
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
