import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as zlib from "node:zlib";
import { request } from "undici";
import { describe, expect, test } from "vitest";
import {
  ContentCodingError,
  decodeBody,
  knownCodings,
  openPushDecoder,
  readContentCodings,
  TooLargeError,
} from "./content-coding.ts";
import { readReplyText } from "./read-reply.ts";

const { zstdCompressSync } = zlib as { zstdCompressSync?: (bytes: Buffer) => Buffer };
const encoders: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  gzip: zlib.gzipSync,
  "x-gzip": zlib.gzipSync,
  deflate: zlib.deflateSync,
  br: zlib.brotliCompressSync,
  ...(zstdCompressSync && { zstd: zstdCompressSync }),
};

/** A text of the given length that compresses badly. */
function noise(length: number): string {
  let state = 7;
  return Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return String.fromCharCode(97 + (state % 26));
  }).join("");
}

async function* inPieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += size)
    yield bytes.subarray(start, start + size);
}

async function decode(
  bytes: Buffer,
  header: string,
  { limitBytes = 1e6, pieceSize = 1000 } = {},
): Promise<string> {
  const pieces: Uint8Array[] = [];
  const codings = readContentCodings(header);
  for await (const piece of decodeBody(inPieces(bytes, pieceSize), { codings, limitBytes })) {
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

async function push(bytes: Buffer, header: string, pieceSize = 1000): Promise<string> {
  const pieces: Buffer[] = [];
  await new Promise<void>((resolve, reject) => {
    const decoder = openPushDecoder(readContentCodings(header), {
      onPiece: (piece) => pieces.push(piece),
      onDrain: () => {},
      onEnd: (error) => (error === undefined ? resolve() : reject(error)),
    });
    for (let start = 0; start < bytes.length; start += pieceSize) {
      decoder.write(bytes.subarray(start, start + pieceSize));
    }
    decoder.end();
  });
  return Buffer.concat(pieces).toString("utf8");
}

const text = `é ${noise(200_000)}`;
const plain = Buffer.from(text);

describe("decodeBody() and openPushDecoder()", () => {
  test.each(Object.entries(encoders))("read %s, in pieces of any length", async (name, encode) => {
    const bytes = encode(plain);
    expect(await decode(bytes, name)).toBe(text);
    expect(await decode(bytes, name.toUpperCase(), { pieceSize: 1e7 })).toBe(text);
    expect(await push(bytes, name)).toBe(text);
    const short = encode(Buffer.from("{}"));
    expect(await decode(short, name, { pieceSize: 1 })).toBe("{}");
    expect(await push(short, name, 1)).toBe("{}");
  });

  test("read deflate without the header of zlib, as some send it", async () => {
    expect(await decode(zlib.deflateRawSync(plain), "deflate")).toBe(text);
    expect(await push(zlib.deflateRawSync(plain), "deflate")).toBe(text);
  });

  test("read several codings, the last first, and pass over identity", async () => {
    const bytes = zlib.brotliCompressSync(zlib.gzipSync(plain));
    expect(await decode(bytes, "identity, gzip , BR")).toBe(text);
    expect(await push(bytes, "gzip,br")).toBe(text);
    expect(await decode(plain, "identity")).toBe(text);
    expect(await decode(plain, "")).toBe(text);
  });

  test.each(Object.entries(encoders))(
    "say of %s that is cut or broken that it is",
    async (name, encode) => {
      const bytes = encode(plain);
      const broken = Buffer.from(bytes).fill(0xff, 0, 40);
      for (const wrong of [bytes.subarray(0, -10), broken, plain]) {
        const message = new RegExp(
          `^the body is not the ${name} that its Content-Encoding says \\(.+\\)$`,
        );
        await expect(decode(wrong, name)).rejects.toMatchObject({
          name: "ContentCodingError",
          kind: "broken",
          message: expect.stringMatching(message) as string,
        });
        await expect(push(wrong, name)).rejects.toBeInstanceOf(ContentCodingError);
      }
    },
  );

  test.each([...Object.entries(encoders), ["deflate", zlib.deflateRawSync] as const])(
    "lose no bytes that follow the end of %s",
    async (name, encode) => {
      const wrong = Buffer.concat([encode(Buffer.from("{}")), Buffer.from("and more")]);
      for (const pieceSize of [1e7, 10, 1]) {
        await expect(decode(wrong, name, { pieceSize })).rejects.toMatchObject({ kind: "broken" });
        await expect(push(wrong, name, pieceSize)).rejects.toMatchObject({ kind: "broken" });
      }
      const two = Buffer.concat([encode(plain), encode(Buffer.from("{}"))]);
      const read = await decode(two, name).catch((error: ContentCodingError) => error.kind);
      expect([`${text}{}`, "broken"]).toContain(read);
    },
  );

  test("stop a body that expands beyond the limit, in its last layer or in one between", async () => {
    // Longer than the read-ahead of any Node release.
    const member = zlib.gzipSync(Buffer.alloc(2 ** 20));
    const bomb = Buffer.concat(Array.from({ length: 400 }, () => member));
    let takenBytes = 0;
    async function* counted(): AsyncGenerator<Buffer> {
      for await (const piece of inPieces(bomb, 1000)) {
        takenBytes += piece.length;
        yield piece;
      }
    }
    const codings = ["gzip"];
    const decoded = decodeBody(counted(), { codings, limitBytes: 100_000 });
    await expect(collect(decoded)).rejects.toBeInstanceOf(TooLargeError);
    expect(takenBytes).toBeLessThan(bomb.length / 2);

    const empty = zlib.gzipSync(Buffer.alloc(0));
    const nothing = Buffer.concat(Array.from({ length: 20_000 }, () => empty));
    const within = zlib.gzipSync(nothing);
    expect(within.length).toBeLessThan(100_000);
    await expect(decode(within, "gzip, gzip", { limitBytes: 100_000 })).rejects.toThrow(
      "larger than 100000 bytes",
    );
    await expect(decode(nothing, "gzip", { limitBytes: 100_000 })).rejects.toThrow(
      "larger than 100000 bytes",
    );
  });

  test("pass on errors of the source unchanged", async () => {
    const gone = new Error("the client is gone");
    async function* breaking(): AsyncGenerator<Buffer> {
      yield zlib.gzipSync(plain).subarray(0, 100);
      throw gone;
    }
    const decoded = decodeBody(breaking(), { codings: ["gzip"], limitBytes: 1e6 });
    await expect(collect(decoded)).rejects.toBe(gone);
  });
});

async function collect(pieces: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return all;
}

describe("readContentCodings()", () => {
  test.each([
    ["lz4", `the content coding "lz4" is not supported, expected ${knownCodings}, or none`],
    ["gzip, aws-chunked", 'the content coding "aws-chunked" is not supported'],
    ["gzip,gzip,gzip,gzip,gzip", "5 content codings are applied to the body, expected at most 4"],
  ])("names the problem of %j", (header, message) => {
    expect(() => readContentCodings(header)).toThrow(message);
  });

  test("reads a header that is absent or given twice", () => {
    expect(readContentCodings(null)).toEqual([]);
    expect(readContentCodings(undefined)).toEqual([]);
    expect(readContentCodings(["gzip", "br, identity"])).toEqual(["gzip", "br"]);
  });
});

test.each([
  ["gzip", zlib.gzipSync(plain), text],
  ["identity", plain, text],
  ["lz4", plain, 'the content coding "lz4" is not supported'],
  ["gzip", zlib.gzipSync(plain).subarray(0, 100), "the body is not the gzip"],
  ["identity", Buffer.from("\uFEFF{}"), "{}"],
  ["identity", Buffer.from('"\u00e9"', "latin1"), "line 1 is not UTF-8"],
])("readReplyText() reads a reply in %s, or gives the reason", async (coding, bytes, expected) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-encoding": coding }).end(bytes);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const reply = await request(`http://127.0.0.1:${port}/`);
  const read = await readReplyText(reply).catch((error: unknown) => (error as Error).message);
  expect(read.slice(0, expected.length)).toBe(expected);
  server.closeAllConnections();
  server.close();
});
