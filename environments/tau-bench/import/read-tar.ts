import { UsageError } from "../../../src/errors.ts";

/** A file of an archive. */
export interface TarFile {
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

const blockBytes = 512;

/**
 * Reads the wanted files of a tar archive, one after the other. Links, devices and folders are passed
 * over; nothing is written anywhere, so no path can lead astray.
 *
 * **Source:** POSIX.1-2017, pax interchange format (ustar headers, extended header records), and GNU
 * tar's manual (long names).
 *
 * @throws UsageError where it is no archive, is cut off, or exceeds a limit.
 */
export async function* readTar(
  source: AsyncIterable<Buffer>,
  options: ReadTarOptions,
): AsyncGenerator<TarFile> {
  const bytes = new ByteReader(source, options);
  try {
    yield* readEntries(bytes, options);
  } finally {
    await bytes.close();
  }
}

async function* readEntries(bytes: ByteReader, options: ReadTarOptions): AsyncGenerator<TarFile> {
  let longPath: string | undefined;
  for (;;) {
    const header = await bytes.take(blockBytes);
    if (header.every((byte) => byte === 0)) return;
    const { path, size, type } = readHeader(header, options.place);
    if (type === "x" || type === "L") {
      const body = await readPadded(bytes, size, options);
      longPath = type === "L" ? text(body) : (paxPath(body) ?? longPath);
      continue;
    }
    const name = longPath ?? path;
    longPath = undefined;
    if (type === "file" && options.wants(name)) {
      yield { path: name, content: await readPadded(bytes, size, options) };
    } else {
      await bytes.skip(padded(size));
    }
  }
}

interface Header {
  readonly path: string;
  readonly size: number;
  /** `x` is an extended header for the next entry, `L` its long name. */
  readonly type: "file" | "x" | "L" | "other";
}

const types: Readonly<Record<string, Header["type"]>> = {
  "0": "file",
  "\0": "file",
  x: "x",
  L: "L",
};

function readHeader(header: Buffer, place: string): Header {
  const wanted = octal(header.subarray(148, 156));
  let sum = 0;
  for (const [index, byte] of header.entries()) sum += index >= 148 && index < 156 ? 0x20 : byte;
  const size = octal(header.subarray(124, 136));
  if (sum !== wanted || size === undefined) {
    throw new UsageError(`Cannot unpack ${place}: it is no tar archive, or a broken one`);
  }
  const prefix = text(header.subarray(257, 262)) === "ustar" ? text(header.subarray(345, 500)) : "";
  const name = text(header.subarray(0, 100));
  return {
    path: prefix === "" ? name : `${prefix}/${name}`,
    size,
    type: types[String.fromCharCode(header[156] ?? 0)] ?? "other",
  };
}

/** Text up to the first NUL. */
function text(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? field.length : end);
}

function octal(field: Buffer): number | undefined {
  const digits = text(field).trim();
  return /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : undefined;
}

/** The path in an extended header: records of `<length> <key>=<value>\n`. */
function paxPath(body: Buffer): string | undefined {
  let path: string | undefined;
  for (let start = 0; start < body.length;) {
    const space = body.indexOf(0x20, start);
    const length = Number(body.toString("latin1", start, space));
    if (space < 0 || !Number.isInteger(length) || length < 5) return path;
    const record = body.toString("utf8", space + 1, start + length - 1);
    if (record.startsWith("path=")) path = record.slice("path=".length);
    start += length;
  }
  return path;
}

async function readPadded(
  bytes: ByteReader,
  size: number,
  { place, maxFileBytes }: ReadTarOptions,
): Promise<Buffer> {
  if (size > maxFileBytes) {
    throw new UsageError(`Cannot unpack ${place}: a file has ${size} bytes, limit ${maxFileBytes}`);
  }
  const content = await bytes.take(size);
  await bytes.skip(padded(size) - size);
  return content;
}

function padded(size: number): number {
  return Math.ceil(size / blockBytes) * blockBytes;
}

/** Hands out a stream in pieces of the lengths that are asked for. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  readonly #options: ReadTarOptions;
  #rest: Buffer = Buffer.alloc(0);
  #total = 0;

  constructor(source: AsyncIterable<Buffer>, options: ReadTarOptions) {
    this.#source = source[Symbol.asyncIterator]();
    this.#options = options;
  }

  /** Lets go of the stream, also where it is not at its end. */
  async close(): Promise<void> {
    await this.#source.return?.();
  }

  async take(length: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    await this.#consume(length, (piece) => pieces.push(piece));
    return Buffer.concat(pieces);
  }

  async skip(length: number): Promise<void> {
    await this.#consume(length, () => undefined);
  }

  async #consume(length: number, use: (piece: Buffer) => void): Promise<void> {
    let left = length;
    while (left > 0) {
      if (this.#rest.length === 0) await this.#pull();
      const piece = this.#rest.subarray(0, left);
      use(piece);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
    }
  }

  async #pull(): Promise<void> {
    const { place, maxTotalBytes } = this.#options;
    const next = await this.#source.next();
    if (next.done === true) throw new UsageError(`Cannot unpack ${place}: it is cut off`);
    this.#rest = next.value;
    this.#total += next.value.length;
    if (this.#total > maxTotalBytes) {
      throw new UsageError(`Cannot unpack ${place}: it exceeds ${maxTotalBytes} bytes`);
    }
  }
}
