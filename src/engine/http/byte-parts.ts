/** Bytes in several parts that can be read repeatedly. Long bodies are sent this way, without joining their parts. */
export interface ByteParts extends Iterable<Uint8Array> {
  /** Number of bytes of all parts. */
  readonly byteLength: number;
}

/** The bytes of a request's body. */
export type BodyBytes = Uint8Array | ByteParts;

/** Returns the bytes in one piece. */
export function joinParts(body: BodyBytes): Uint8Array {
  return body instanceof Uint8Array ? body : Buffer.concat([...body]);
}
