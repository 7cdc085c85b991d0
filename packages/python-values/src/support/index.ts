/**
 * Helpers that Turnwright's packages share. They may change in any release.
 *
 * @module
 */
export { appendToList } from "./append-to-list.ts";
export { decodeOrKeep } from "./decode-or-keep.ts";
export {
  assertInvariant,
  describeError,
  describeStack,
  InvariantError,
  isOwnBug,
  ownBug,
  UsageError,
} from "./errors.ts";
export { expectedName, nearestName } from "./nearest-name.ts";
