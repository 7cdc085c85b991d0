import { describe, expect, test } from "vitest";
import { makeTar, type TarEntry } from "./make-tar.fixture.ts";
import { readTar, type ReadTarOptions } from "./read-tar.ts";

const defaults: ReadTarOptions = {
  place: "a.tar",
  wants: () => true,
  maxFileBytes: 10_000,
  maxTotalBytes: 100_000,
};

async function read(
  archive: Buffer,
  { pieceBytes = 700, ...options }: Partial<ReadTarOptions> & { pieceBytes?: number } = {},
): Promise<Record<string, string>> {
  async function* pieces() {
    for (let start = 0; start < archive.length; start += pieceBytes) {
      yield await Promise.resolve(archive.subarray(start, start + pieceBytes));
    }
  }
  const files: Record<string, string> = {};
  for await (const { path, content } of readTar(pieces(), { ...defaults, ...options })) {
    files[path] = content.toString();
  }
  return files;
}

const entries: readonly TarEntry[] = [
  {
    path: "pax_global_header",
    type: "g",
    content: "52 comment=59a200c6d575d595120f1cb70fea53cef0632f6b\n",
  },
  { path: "top/", type: "5" },
  { path: "top/a.txt", content: "a".repeat(512) },
  { path: "top/link", type: "2" },
  { path: "b.txt", prefix: "top/deep", content: "b" },
  { path: "x", type: "x", content: "19 path=top/é.txt\n" },
  { path: "top/_.txt", content: "c" },
  { path: "././@LongLink", type: "L", content: `top/${"d".repeat(120)}\0` },
  { path: "top/ddd", content: "d" },
  { path: "top/empty" },
];

describe("readTar()", () => {
  test.each([1, 512, 700, 1_000_000])("reads files from pieces of %i bytes", async (pieceBytes) => {
    expect(await read(makeTar(entries), { pieceBytes })).toEqual({
      "top/a.txt": "a".repeat(512),
      "top/deep/b.txt": "b",
      "top/é.txt": "c",
      [`top/${"d".repeat(120)}`]: "d",
      "top/empty": "",
    });
  });

  test("skips unwanted files of any size", async () => {
    const archive = makeTar([
      { path: "large", content: "x".repeat(20_000) },
      { path: "small", content: "y" },
    ]);
    expect(await read(archive, { wants: (path) => path === "small" })).toEqual({ small: "y" });
    await expect(read(archive)).rejects.toThrow("a file has 20000 bytes, limit 10000");
    await expect(read(archive, { wants: () => false, maxTotalBytes: 10_000 })).rejects.toThrow(
      "it exceeds 10000 bytes",
    );
  });

  test("yields paths unchanged, and no links", async () => {
    const archive = makeTar([
      { path: "/etc/passwd", content: "a" },
      { path: "../../up", content: "b" },
      { path: "hard", type: "1", linkname: "/etc/passwd" },
      { path: "soft", type: "2", linkname: "../../up" },
      { path: "device", type: "3" },
      { path: "pipe", type: "6" },
      { path: "x", type: "x", content: "21 path=../../longer\n" },
      { path: "short", content: "c" },
    ]);
    expect(await read(archive)).toEqual({
      "/etc/passwd": "a",
      "../../up": "b",
      "../../longer": "c",
    });
  });

  test("refuses headers that claim more than anyone has", async () => {
    const huge = makeTar([
      { path: "x", type: "x", content: "22 size=8000000000000\n" },
      { path: "a" },
    ]);
    await expect(read(huge)).rejects.toThrow("a file has 8000000000000 bytes, limit 10000");
    await expect(read(huge, { wants: () => false })).rejects.toThrow("it is cut off");
    // An extended header is kept in memory whole, so it has a limit of its own.
    const meta = makeTar([{ path: "x", type: "x", content: "x".repeat(9_000_000) }]);
    await expect(read(meta, { maxTotalBytes: 2 ** 30, pieceBytes: 65_536 })).rejects.toThrow(
      "it is not a tar archive, or is damaged",
    );
  });

  test("closes the archive when the reader stops", async () => {
    let isReleased = false;
    async function* endless() {
      try {
        yield makeTar([{ path: "a", content: "x" }]).subarray(0, 1024);
        for (;;)
          yield await Promise.resolve(makeTar([{ path: "b", content: "x" }]).subarray(0, 1024));
      } finally {
        isReleased = true;
      }
    }
    for await (const { path } of readTar(endless(), defaults)) {
      expect(path).toBe("a");
      break;
    }
    expect(isReleased).toBe(true);
  });

  test("refuses a non-archive and an incomplete archive", async () => {
    const archive = makeTar([{ path: "a", content: "x".repeat(600) }]);
    await expect(read(archive.subarray(0, 900))).rejects.toThrow(
      "Cannot unpack a.tar: it is cut off",
    );
    await expect(read(Buffer.alloc(0))).rejects.toThrow("it is cut off");
    await expect(read(Buffer.alloc(1024, "no tar "))).rejects.toThrow("it is not a tar archive");
    archive[0] = 0x62;
    await expect(read(archive)).rejects.toThrow("it is not a tar archive, or is damaged");
  });
});
