import { createHash, randomBytes } from "node:crypto";

/** The prefix of sampling keys. */
const samplingPrefix = "tw-";

/** The prefix of owner keys. */
const ownerPrefix = "tw-owner-";

/** Creates the key with which an agent samples: 192 random bits. */
export function createSamplingKey(): string {
  return samplingPrefix + randomKey();
}

/** Creates the key that scores, shows and ends a session: 192 random bits. */
export function createOwnerKey(): string {
  return ownerPrefix + randomKey();
}

/** True if the key has the form of an owner key. Such a key never opens a session. */
export function isOwnerKey(key: string): boolean {
  return key.startsWith(ownerPrefix);
}

/** Returns the hash of a key. Only hashes are kept. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function randomKey(): string {
  return randomBytes(24).toString("base64url");
}
