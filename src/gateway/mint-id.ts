import { randomBytes } from "node:crypto";

/** Makes an id that nobody has: the prefix and 24 letters and digits. */
export type MintId = (prefix: string) => string;

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** How many letters and digits stand behind the prefix: more than 128 bits. */
const idLength = 24;

/** @param random - The source of random bytes. Default the system's. */
export function createMintId(random: (size: number) => Uint8Array = randomBytes): MintId {
  return (prefix) => {
    let id = "";
    while (id.length < idLength) {
      for (const byte of random(idLength * 2)) {
        // Bytes beyond the last whole multiple would make some digits likelier than others.
        if (byte < 248 && id.length < idLength) id += digits[byte % 62];
      }
    }
    return prefix + id;
  };
}
