import { crc32 } from "node:zlib";
import { type OpenFile, readBytes } from "../disk/files.ts";

// The format of a packed file. It is a gzip file of many members (RFC 1952), so `zcat` and every gzip library read it:
//
// 1. One member for each block of the content. All blocks but the last have the same size.
// 2. Empty members for the index. Their extra fields have the size of each member of 1: 32 bits, little-endian.
// 3. An empty member of fixed size, the footer. Its extra field has the facts that `FooterFacts` lists, and a CRC-32.

/** The size of a block of content in bytes. */
export const contentBlockSize = 256 * 1024;

/** The largest size of a block that is accepted from a file, in bytes. */
const mostBlockSize = 64 * 1024 * 1024;

/** The position of each block in a packed file. */
export interface GzipIndex {
  /** The size of the content in bytes. */
  readonly size: number;
  /** The size in bytes of each block of content but the last. */
  readonly blockSize: number;
  /** The first byte of each block's member in the packed file, and the end of the last one. */
  readonly starts: readonly number[];
}

interface FooterFacts {
  readonly size: number;
  readonly blockSize: number;
  readonly blockCount: number;
  /** The first byte of the index's members. */
  readonly indexStart: number;
  /** The CRC-32 of the index's members and of the facts above. */
  readonly checksum: number;
}

const formatVersion = 1;

/** The most sizes in one member of the index. An extra field has at most 65,535 bytes. */
const sizesPerMember = 16_000;

const subfields = { index: "TI", footer: "TF" } as const;

/**
 * Magic number, method (deflate), flags (an extra field follows), no modification time, no compression hint, unknown
 * operating system.
 */
const memberHeader = Buffer.from([0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 255]);

/** An empty deflate stream, its CRC-32 and its size. */
const emptyContent = Buffer.from([3, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

/** Bytes before the data of an extra field: the header, the field's length, the subfield's name and length. */
const dataStart = memberHeader.length + 2 + 4;

const checkedLength = 1 + 4 + 4 + 8 + 8;
const footerLength = dataStart + checkedLength + 4 + emptyContent.length;

/** Makes an empty member with data in its extra field. */
function memberWith(name: string, data: Buffer): Buffer {
  const lengths = Buffer.alloc(6);
  lengths.writeUInt16LE(data.length + 4, 0);
  lengths.write(name, 2, "latin1");
  lengths.writeUInt16LE(data.length, 4);
  return Buffer.concat([memberHeader, lengths, data, emptyContent]);
}

/**
 * Returns the data of a member that `memberWith()` made; `undefined` if the bytes do not begin with one of this name.
 */
function dataOf(name: string, bytes: Buffer): Buffer | undefined {
  if (bytes.length < dataStart) return undefined;
  const length = bytes.readUInt16LE(dataStart - 2);
  const member = bytes.subarray(0, dataStart + length + emptyContent.length);
  const data = member.subarray(dataStart, dataStart + length);
  return data.length === length && member.equals(memberWith(name, data)) ? data : undefined;
}

/**
 * Encodes the end of a packed file.
 *
 * @param content.size - The size of the content in bytes.
 * @param content.memberSizes - The size in bytes of each block's member, in order.
 */
export function encodeIndex({
  size,
  memberSizes,
  blockSize,
}: {
  readonly size: number;
  readonly memberSizes: readonly number[];
  readonly blockSize: number;
}): Buffer {
  const members: Buffer[] = [];
  for (let first = 0; first < memberSizes.length; first += sizesPerMember) {
    const part = memberSizes.slice(first, first + sizesPerMember);
    const data = Buffer.alloc(4 * part.length);
    for (const [place, memberSize] of part.entries()) data.writeUInt32LE(memberSize, 4 * place);
    members.push(memberWith(subfields.index, data));
  }
  const index = Buffer.concat(members);
  const indexStart = memberSizes.reduce((sum, memberSize) => sum + memberSize, 0);
  const data = Buffer.alloc(checkedLength + 4);
  data.writeUInt8(formatVersion, 0);
  data.writeUInt32LE(blockSize, 1);
  data.writeUInt32LE(memberSizes.length, 5);
  data.writeBigUInt64LE(BigInt(size), 9);
  data.writeBigUInt64LE(BigInt(indexStart), 17);
  const checksum = crc32(data.subarray(0, checkedLength), crc32(index));
  data.writeUInt32LE(checksum, checkedLength);
  return Buffer.concat([index, memberWith(subfields.footer, data)]);
}

/** Reads the index of a packed file; returns `undefined` if the file does not end with one, or if it is damaged. */
export async function readIndex(file: OpenFile): Promise<GzipIndex | undefined> {
  const { size: fileSize } = await file.facts();
  const footerStart = fileSize - footerLength;
  if (footerStart < 0) return undefined;
  const footer = await readBytes(file, { start: footerStart, end: fileSize });
  const data = dataOf(subfields.footer, footer);
  const facts = data && readFooter(data);
  if (data === undefined || facts === undefined || facts.indexStart > footerStart) return undefined;
  const bytes = await readBytes(file, { start: facts.indexStart, end: footerStart });
  const checksum = crc32(data.subarray(0, checkedLength), crc32(bytes));
  const memberSizes = checksum === facts.checksum ? readSizes(bytes) : undefined;
  return memberSizes && toIndex(facts, memberSizes);
}

function readFooter(data: Buffer): FooterFacts | undefined {
  if (data.length !== checkedLength + 4 || data.readUInt8(0) !== formatVersion) return undefined;
  const facts = {
    blockSize: data.readUInt32LE(1),
    blockCount: data.readUInt32LE(5),
    size: Number(data.readBigUInt64LE(9)),
    indexStart: Number(data.readBigUInt64LE(17)),
    checksum: data.readUInt32LE(checkedLength),
  };
  const { blockSize, blockCount, size } = facts;
  const isSound =
    blockSize > 0 && blockSize <= mostBlockSize && blockCount === Math.ceil(size / blockSize);
  return isSound ? facts : undefined;
}

/** Reads the sizes in the index's members; `undefined` if the bytes are not valid members. */
function readSizes(bytes: Buffer): readonly number[] | undefined {
  const sizes: number[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const data = dataOf(subfields.index, rest);
    if (data === undefined) return undefined;
    for (let at = 0; at + 4 <= data.length; at += 4) sizes.push(data.readUInt32LE(at));
    rest = rest.subarray(dataStart + data.length + emptyContent.length);
  }
  return sizes;
}

function toIndex(
  { size, blockSize, blockCount, indexStart }: FooterFacts,
  memberSizes: readonly number[],
): GzipIndex | undefined {
  const starts = [0];
  for (const memberSize of memberSizes) starts.push(starts.at(-1)! + memberSize);
  const isSound = memberSizes.length === blockCount && starts.at(-1) === indexStart;
  return isSound ? { size, blockSize, starts } : undefined;
}
