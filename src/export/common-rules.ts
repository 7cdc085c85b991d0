import type { ExportRules } from "./exporter.ts";

/**
 * For trainers that name each row's group: what cannot be trained on is left out, and the others stay.
 */
export const namedGroupRules: ExportRules = {
  truncated: { action: "keep", why: "" },
  failed: { action: "leave-out", why: "it has no reward" },
  unscored: { action: "leave-out", why: "it has no reward" },
  aborted: { action: "leave-out", why: "it has no end" },
  empty: { action: "leave-out", why: "nothing in it can be trained" },
  segments: { action: "keep", why: "a row each" },
  mixedVersions: { action: "keep", why: "no field for it" },
  unnamedVersions: { action: "keep", why: "no field for it" },
  environmentTail: { action: "cut", why: "nothing behind the last sampled token is trained" },
};

/** For trainers that count off groups in the order of the rows: a group is there whole or not at all. */
export const countedGroupRules: ExportRules = {
  ...namedGroupRules,
  failed: { action: "leave-out-group", why: "it has no reward, and groups are counted off" },
  unscored: { action: "leave-out-group", why: "it has no reward, and groups are counted off" },
  aborted: { action: "leave-out-group", why: "groups are counted off" },
  empty: { action: "leave-out-group", why: "groups are counted off" },
  segments: { action: "leave-out-group", why: "one row an attempt: groups are counted off" },
};
