import { createHash } from "node:crypto";
import {
  chooseParser,
  type ParserSettings,
} from "../../../packages/tool-parsers/src/choose-parser.ts";
import { resolveEngineVersion } from "../../../packages/tool-parsers/src/engine-version.ts";
import { findToolCallParser } from "../../../packages/tool-parsers/src/registry.ts";
import { toPlainJson, type PyDict } from "../../../packages/python-values/src/value.ts";
import type { CapabilityCard } from "./capability-card.ts";
import type { TemplateProfile } from "./classify-template.ts";
import { readOwnCalls } from "../read-own-calls.ts";

/** The facts on a card beside the measurements of the template. */
interface CardFacts {
  readonly source: string;
  readonly stopIds: readonly number[];
  /** Parsers to name on the card. Default: those that fit the template. */
  readonly parsers?: ParserSettings;
  /** The model's added tokens, if known. */
  readonly vocabulary?: readonly string[];
  /** The model's own description of its turn format, for the parsers that use it. */
  readonly responseTemplate?: PyDict;
  /** Template variables that the user set. */
  readonly variables?: PyDict;
  /** The names of the settings that the user overrode. */
  readonly overrides: readonly string[];
}

/**
 * Makes the card of a measured template.
 *
 * @throws UsageError for an unknown parser.
 */
export function buildCard(profile: TemplateProfile, facts: CardFacts): CapabilityCard {
  const { source, stopIds, parsers, vocabulary, variables = new Map(), overrides } = facts;
  const { template, stops, delta, edits, keepThinking } = profile;
  const { toolCallParser, reasoningParser } = {
    ...chooseParser(template.source, parsers?.dialect ?? parsers?.servedBy),
    ...parsers,
  };
  const release = findRelease(toolCallParser, parsers);
  const ownCalls =
    toolCallParser === undefined
      ? undefined
      : readOwnCalls(template, {
          parser: toolCallParser,
          reasoningParser: reasoningParser === "none" ? undefined : reasoningParser,
          ...release,
          stops: stops.sampled,
          ...(vocabulary !== undefined && { vocabulary }),
          ...(facts.responseTemplate !== undefined && { responseTemplate: facts.responseTemplate }),
        });
  return {
    source,
    templateHash: createHash("sha256").update(template.source, "utf8").digest("hex"),
    stopLiterals: stops.sampled,
    stopIds,
    ...(stops.openers.length !== 0 && { stopOpeners: stops.openers }),
    history: edits,
    ...(keepThinking !== undefined && {
      keepThinking: {
        variable: keepThinking.variable,
        value: keepThinking.value,
        isSet: profile.setsKeepThinking,
      },
    }),
    transformers: template.transformers,
    showsTools: profile.showsTools,
    opensReasoning: profile.opensReasoning,
    deltaBase: delta.plan.base,
    deltaNeedsTools: delta.plan.needsTools,
    supports: delta.supports,
    ...(toolCallParser !== undefined && { parser: toolCallParser }),
    ...(reasoningParser !== undefined && { reasoningParser }),
    ...release,
    ...(ownCalls !== undefined && { ownCalls: ownCalls.type }),
    ...(variables.size !== 0 && { variables: plainOf(variables) }),
    ...(overrides.length !== 0 && { overrides }),
    warnings: [
      ...profile.warnings,
      ...(ownCalls?.type === "misread"
        ? [
            `The parser ${toolCallParser} does not read a call as this template writes it ` +
              `(${ownCalls.detail}): calls that the policy writes so come back to it as errors`,
          ]
        : []),
    ],
  };
}

/** The engine that the parser reproduces, with its release. */
function findRelease(
  parserName: string | undefined,
  { dialect, servedBy = "sglang", engineVersion }: ParserSettings = {},
): Pick<CapabilityCard, "dialect" | "engineVersion"> {
  if (parserName === undefined) return {};
  const { dialects } = findToolCallParser(parserName);
  const found = dialect ?? dialects.find((known) => known === servedBy) ?? dialects[0] ?? "sglang";
  return { dialect: found, engineVersion: resolveEngineVersion(found, engineVersion) };
}

function plainOf(variables: PyDict): NonNullable<CapabilityCard["variables"]> {
  return Object.fromEntries([...variables].map(([name, value]) => [name, toPlainJson(value)]));
}

/** The names of chosen parsers among a card's overrides. */
export function namesOfChoices(parsers: ParserSettings = {}): readonly string[] {
  return [
    ...(parsers.toolCallParser === undefined ? [] : ["parser"]),
    ...(parsers.reasoningParser === undefined ? [] : ["reasoningParser"]),
    ...(parsers.dialect === undefined ? [] : ["dialect"]),
    ...(parsers.engineVersion === undefined ? [] : ["engineVersion"]),
  ];
}
