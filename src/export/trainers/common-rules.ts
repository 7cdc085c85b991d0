import type { ExportRules } from "../exporter.ts";

/**
 * Rules for trainers that name each row's group. Unusable attempts are left out, and the other attempts of the group
 * are exported.
 */
export const namedGroupRules: ExportRules = {
  truncated: { action: "keep", why: "" },
  failed: { action: "leave-out", why: "it has no reward" },
  unscored: { action: "leave-out", why: "it has no reward" },
  aborted: { action: "leave-out", why: "it has no reward" },
  empty: { action: "leave-out", why: "no token in it can be trained" },
  segments: { action: "keep", why: "each becomes a row" },
  differentPrompts: { action: "keep", why: "" },
  mixedVersions: { action: "keep", why: "no field for it" },
  unnamedVersions: { action: "keep", why: "no field for it" },
  environmentTail: { action: "cut", why: "no token after the last sampled one is trained" },
  uncomputedTail: { action: "cut", why: "the engine did not compute them, so they have no routes" },
  components: { action: "drop", why: "the trainer has no field for components of a reward" },
  turnRewards: { action: "drop", why: "the trainer takes one reward for an attempt" },
};

/** Rules for trainers that form groups by counting rows. Only complete groups are exported. */
export const countedGroupRules: ExportRules = {
  ...namedGroupRules,
  failed: {
    action: "leave-out-group",
    why: "it has no reward, and the trainer forms groups by counting rows",
  },
  unscored: {
    action: "leave-out-group",
    why: "it has no reward, and the trainer forms groups by counting rows",
  },
  aborted: { action: "leave-out-group", why: "the trainer forms groups by counting rows" },
  empty: { action: "leave-out-group", why: "the trainer forms groups by counting rows" },
  segments: { action: "keep", why: "each becomes a row, with one id for the attempt" },
};
