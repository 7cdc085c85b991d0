import { createHash } from "node:crypto";
import { chooseParser } from "../parser/choose-parser.ts";
import type { CapabilityCard } from "./capability-card.ts";
import type { TemplateProfile } from "./classify-template.ts";

/** Writes down what was measured of a template. */
export function buildCard(
  profile: TemplateProfile,
  { source, stopIds }: { readonly source: string; readonly stopIds: readonly number[] },
): CapabilityCard {
  const { template, stops, delta, edits, keepThinking, warnings } = profile;
  const { toolCallParser, reasoningParser } = chooseParser(template.source);
  return {
    source,
    templateHash: createHash("sha256").update(template.source, "utf8").digest("hex"),
    stopLiterals: stops.sampled,
    stopIds,
    ...(stops.openers.length === 0 ? {} : { stopOpeners: stops.openers }),
    history: edits,
    ...(keepThinking === undefined
      ? {}
      : { keepThinking: { variable: keepThinking.variable, value: keepThinking.value } }),
    opensReasoning: profile.opensReasoning,
    deltaBase: delta.plan.base,
    deltaNeedsTools: delta.plan.needsTools,
    supports: delta.supports,
    ...(toolCallParser === undefined ? {} : { parser: toolCallParser }),
    ...(reasoningParser === undefined ? {} : { reasoningParser }),
    warnings,
  };
}
