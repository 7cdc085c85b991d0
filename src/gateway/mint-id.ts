import { randomBytes } from "node:crypto";

/** Returns a new unique id: the prefix and 24 letters and digits. */
export type MintId = (prefix: string) => string;

const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/** Number of random characters after the prefix. They carry more than 128 bits. */
const idLength = 24;

/** Mints an id from the system's random bytes. */
export const mintId: MintId = (prefix) => {
  let id = "";
  while (id.length < idLength) {
    for (const byte of randomBytes(idLength * 2)) {
      // Rejects the bytes from 248 on, because they would make the first 8 characters more likely.
      if (byte < 248 && id.length < idLength) id += digits[byte % 62];
    }
  }
  return prefix + id;
};
