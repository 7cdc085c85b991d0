import { createHash, randomBytes } from "node:crypto";

/** The start of each key with which an agent samples. */
const samplingPrefix = "tw-";

/** The start of each key with which the opener of a session scores, shows and ends it. */
const ownerPrefix = "tw-owner-";

/** Makes the key with which an agent samples in a session: 192 random bits. */
export function createSamplingKey(): string {
  return samplingPrefix + randomKey();
}

/** Makes the key with which a session is scored, shown and ended: 192 random bits. */
export function createOwnerKey(): string {
  return ownerPrefix + randomKey();
}

/** Tells an owner's key by its form. No session is opened under such a key. */
export function isOwnerKey(key: string): boolean {
  return key.startsWith(ownerPrefix);
}

/** Returns the hash under which the gateway keeps a key. */
export function hashToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

function randomKey(): string {
  return randomBytes(24).toString("base64url");
}
