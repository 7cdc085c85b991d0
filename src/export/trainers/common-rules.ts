import type { ExportRules } from "../exporter.ts";

/**
 * Rules for trainers that name each row's group. Unusable attempts are left out, and the other attempts of the group
 * are exported.
 */
export const namedGroupRules: ExportRules = {
  truncated: { action: "keep", why: "" },
  failed: { action: "leave-out", why: "it has no reward" },
  unscored: { action: "leave-out", why: "it has no reward" },
  aborted: { action: "leave-out", why: "it has no end" },
  empty: { action: "leave-out", why: "no token in it can be trained" },
  segments: { action: "keep", why: "a row each" },
  differentPrompts: { action: "keep", why: "" },
  mixedVersions: { action: "keep", why: "no field for it" },
  unnamedVersions: { action: "keep", why: "no field for it" },
  environmentTail: { action: "cut", why: "no token after the last sampled one is trained" },
  uncomputedTail: { action: "cut", why: "the engine did not compute them, so they have no routes" },
  components: { action: "drop", why: "it has no place for components of a reward" },
  turnRewards: { action: "drop", why: "one reward an attempt" },
};

/** Rules for trainers that form groups by counting rows. Only complete groups are exported. */
export const countedGroupRules: ExportRules = {
  ...namedGroupRules,
  failed: { action: "leave-out-group", why: "it has no reward, and groups are counted off" },
  unscored: { action: "leave-out-group", why: "it has no reward, and groups are counted off" },
  aborted: { action: "leave-out-group", why: "groups are counted off" },
  empty: { action: "leave-out-group", why: "groups are counted off" },
  segments: { action: "keep", why: "a row each, with one id an attempt" },
};
