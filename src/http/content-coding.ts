import { PassThrough, Readable, pipeline, type Transform } from "node:stream";
import * as zlib from "node:zlib";

/** A body that cannot be decoded: its content coding is `unknown`, or its bytes are `broken`. */
export class ContentCodingError extends Error {
  override readonly name = "ContentCodingError";
  readonly kind: "unknown" | "broken";

  constructor(kind: "unknown" | "broken", message: string, options: { cause?: unknown } = {}) {
    super(message, options);
    this.kind = kind;
  }
}

/** A decoded body exceeds its limit. */
export class TooLargeError extends Error {
  override readonly name = "TooLargeError";
}

/** The name of one content coding, in lower case. */
export type ContentCoding = string;

/** The most codings that one body may have. */
const maxCodings = 4;

/** zstd windows above 8 MiB are refused, as in RFC 9659, since each needs that much memory. */
const zstdWindowLog = 23;

/** A stage of a pipeline. */
type Layer = Transform | ((source: AsyncIterable<Uint8Array>) => AsyncIterable<Uint8Array>);

type CreateDecoder = () => Layer;

/** A decoder of `node:zlib`. */
type Decoder = Transform & { readonly bytesWritten: number };

/** zstd came with Node 22.15, and our type definitions are older. */
const { createZstdDecompress } = zlib as {
  readonly createZstdDecompress?: (options: object) => Decoder;
};
const { ZSTD_d_windowLogMax: windowLogMax } = zlib.constants as {
  readonly ZSTD_d_windowLogMax?: number;
};

const decoders: ReadonlyMap<ContentCoding, CreateDecoder> = new Map<ContentCoding, CreateDecoder>([
  ["gzip", () => zlib.createGunzip()],
  ["x-gzip", () => zlib.createGunzip()],
  ["deflate", () => inflate],
  ["br", () => decodeWith(() => zlib.createBrotliDecompress())],
  ...(createZstdDecompress === undefined || windowLogMax === undefined
    ? []
    : [
        [
          "zstd",
          () =>
            decodeWith(() => createZstdDecompress({ params: { [windowLogMax]: zstdWindowLog } })),
        ] as const,
      ]),
]);

/** The supported codings, as an `Accept-Encoding` header lists them. */
export const knownCodings: string = [...decoders.keys()]
  .filter((name) => name !== "x-gzip")
  .join(", ");

/**
 * Reads a `Content-Encoding` header: the codings in the order in which they were applied, without `identity`.
 *
 * @throws ContentCodingError `unknown` for an unsupported coding, and for more than four.
 */
export function readContentCodings(
  header: string | readonly string[] | null | undefined,
): readonly ContentCoding[] {
  const codings = [header ?? ""]
    .flat()
    .join(",")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  const unknown = codings.find((name) => !decoders.has(name));
  if (unknown !== undefined) {
    throw new ContentCodingError(
      "unknown",
      `the content coding ${JSON.stringify(unknown.slice(0, 60))} is not supported, expected ` +
        `${knownCodings}, or none`,
    );
  }
  if (codings.length > maxCodings) {
    const count = `${codings.length} content codings are applied to the body`;
    throw new ContentCodingError("unknown", `${count}, expected at most ${maxCodings}`);
  }
  return codings;
}

/**
 * Decodes a body piece by piece. The limit applies to the body and to the output of each layer. Without codings the
 * pieces are passed on unchanged, without a limit.
 *
 * @throws ContentCodingError `broken`, also for a body that ends too early.
 * @throws TooLargeError beyond the limit; decoding then stops.
 */
export async function* decodeBody(
  source: AsyncIterable<Uint8Array>,
  {
    codings,
    limitBytes,
  }: { readonly codings: readonly ContentCoding[]; readonly limitBytes: number },
): AsyncGenerator<Uint8Array, void, undefined> {
  if (codings.length === 0) {
    yield* source;
    return;
  }
  /** An error that did not come from a decoder. A pipeline may replace it by an abort error. */
  let ours: unknown;
  async function* limited(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    let size = 0;
    for await (const piece of pieces) {
      size += piece.byteLength;
      if (size > limitBytes) throw (ours = new TooLargeError(`larger than ${limitBytes} bytes`));
      yield piece;
    }
  }
  async function* read(): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } catch (error) {
      throw (ours = error);
    }
  }
  const layers = codings.toReversed().flatMap((name) => [openDecoder(name), limited]);
  const decoded = pipe([Readable.from(limited(read())), ...layers], () => {});
  try {
    yield* decoded as AsyncIterable<Uint8Array>;
  } catch (error) {
    throw ours ?? toCodingError(error, codings);
  } finally {
    decoded.destroy();
  }
}

/** A decoder that receives pieces by calls. */
export interface PushDecoder {
  /**
   * Adds a piece.
   *
   * @returns false if the pieces come too fast; `onDrain` is called when it accepts more.
   */
  write(piece: Uint8Array): boolean;
  /** Ends the input. */
  end(): void;
  /** Stops the decoder; no callback is called afterwards. */
  destroy(): void;
}

/** Opens a decoder for pieces that arrive by calls, as those of replies do. */
export function openPushDecoder(
  codings: readonly ContentCoding[],
  called: {
    readonly onPiece: (piece: Buffer) => void;
    readonly onDrain: () => void;
    /** Called once: after all pieces, or with the ContentCodingError that ended the decoding. */
    readonly onEnd: (error: ContentCodingError | undefined) => void;
  },
): PushDecoder {
  const input = new PassThrough();
  let isOver = false;
  const over = (error?: unknown): void => {
    if (isOver) return;
    isOver = true;
    const isBroken = error !== undefined && error !== null;
    called.onEnd(isBroken ? toCodingError(error, codings) : undefined);
  };
  const layers = codings.toReversed().map(openDecoder);
  const output = pipe([input, ...layers], (error) => {
    if (error) over(error);
  });
  input.on("drain", called.onDrain);
  output.on("data", (piece: Buffer) => {
    if (!isOver) called.onPiece(piece);
  });
  output.on("end", () => over());
  // A pipeline stops listening to its last stage once everything is written to it.
  output.on("error", over);
  return {
    write: (piece) => input.write(piece),
    end: () => void input.end(),
    destroy: () => {
      isOver = true;
      input.destroy();
      output.destroy();
    },
  };
}

/** Calls `pipeline()` with any number of stages, which Node's types do not allow. */
function pipe(
  stages: readonly (Readable | Layer)[],
  onEnd: (error: Error | null | undefined) => void,
): Readable {
  return pipeline(
    stages as unknown as [NodeJS.ReadableStream, NodeJS.ReadWriteStream],
    onEnd,
  ) as unknown as Readable;
}

function openDecoder(name: ContentCoding): Layer {
  const create = decoders.get(name);
  if (create === undefined) throw new ContentCodingError("unknown", `no decoder of ${name}`);
  return create();
}

function toCodingError(error: unknown, codings: readonly ContentCoding[]): ContentCodingError {
  const why = error instanceof Error ? error.message : String(error);
  const message = `the body is not the ${codings.join(" in ")} that its Content-Encoding says (${why})`;
  return new ContentCodingError("broken", message, { cause: error });
}

/**
 * Decodes with a decoder that passes over bytes after the end of the coded body, and refuses such bytes: they may be
 * a part of the body. `gunzip` reads or refuses them itself.
 */
function decodeWith(
  create: () => Decoder,
): (source: AsyncIterable<Uint8Array>) => AsyncGenerator<Uint8Array> {
  return async function* decode(source) {
    const decoder = create();
    let givenBytes = 0;
    async function* counted(): AsyncGenerator<Uint8Array> {
      for await (const piece of source) {
        givenBytes += piece.byteLength;
        yield piece;
      }
    }
    yield* pipeline(Readable.from(counted()), decoder, () => {}) as AsyncIterable<Uint8Array>;
    const { bytesWritten: readBytes } = decoder;
    if (readBytes < givenBytes) {
      throw new Error(`it ends after ${readBytes} bytes, and ${givenBytes - readBytes} follow`);
    }
  };
}

/** Decodes `deflate`. It should have zlib's header, but some senders omit it. */
async function* inflate(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const pieces = source[Symbol.asyncIterator]();
  let first = await pieces.next();
  while (first.done !== true && first.value.byteLength === 0) first = await pieces.next();
  const start = first.done === true ? new Uint8Array() : first.value;
  const isZlib = ((start[0] ?? 0) & 0x0f) === 0x08;
  async function* all(): AsyncGenerator<Uint8Array> {
    yield start;
    yield* { [Symbol.asyncIterator]: () => pieces };
  }
  yield* decodeWith(isZlib ? () => zlib.createInflate() : () => zlib.createInflateRaw())(all());
}
