/**
 * Helpers that Turnwright's packages share. They may change in any release.
 *
 * @module
 */
export { appendToList } from "./append-to-list.ts";
export { decodeOrKeep } from "./decode-or-keep.ts";
export { assertInvariant, describeError, UsageError } from "./errors.ts";
export { expectedName } from "./nearest-name.ts";
