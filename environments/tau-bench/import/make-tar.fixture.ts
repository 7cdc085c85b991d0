/** An entry of a new tar archive. */
export interface TarEntry {
  readonly path: string;
  readonly content?: Buffer | string;
  /** Default `0`, a file. */
  readonly type?: string;
  /** The ustar header's prefix field. */
  readonly prefix?: string;
  /** The target of a link. */
  readonly linkname?: string;
}

/** Makes a tar archive of the given entries, for tests of readers. */
export function makeTar(entries: readonly TarEntry[]): Buffer {
  return Buffer.concat([...entries.flatMap(toBlocks), Buffer.alloc(1024)]);
}

function toBlocks({
  path,
  content = "",
  type = "0",
  prefix = "",
  linkname = "",
}: TarEntry): Buffer[] {
  const body = Buffer.from(content);
  const header = Buffer.alloc(512);
  header.write(path, 0, 100);
  header.write("0000644\0", 100);
  header.write(`${body.length.toString(8).padStart(11, "0")}\0`, 124);
  header.write("        ", 148);
  header.write(type, 156);
  header.write(linkname, 157, 100);
  header.write("ustar\u000000", 257);
  header.write(prefix, 345, 155);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return [header, body, Buffer.alloc((512 - (body.length % 512)) % 512)];
}
